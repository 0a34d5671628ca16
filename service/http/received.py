"""What has come of a request by now, without waiting for more."""

from starlette.types import Message, Receive


def received(receive: Receive) -> Message | None:
    """The next message, if it has come already; one step of the question, no task and no timer.

    None: it has not; ask again, or wait for it.
    """
    question = receive().__await__()
    try:
        next(question)
    except StopIteration as answered:
        message: Message = answered.value
        return message
    finally:
        question.close()
    return None
