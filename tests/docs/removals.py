"""`python -m tests.docs.removals`: removes each mechanism of a guarantee; its test must fail.

It works on a copy of the repository. Words after the command choose removals by part of the test.
"""

import ast
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
_LEFT_OUT: Final = (".git", ".venv", ".tools", ".picket", "__pycache__", ".*_cache", ".hypothesis")
_LIMIT_S: Final = 900
"""The limit of one test. A state machine that fails first looks for its shortest story."""

Span = tuple[int, int]
"""Where a piece of a file begins and ends, in bytes."""


class RemovalError(Exception):
    """A removal names code that is not there, or is there more than once."""


@dataclass(frozen=True, slots=True)
class Skip:
    """A statement that calls this function, anywhere in the definition, becomes `pass`."""

    call: str

    def apply(self, code: str) -> str:
        return _replace_only(code, [_span(code, node) for node in self._statements(code)], "pass")

    def _statements(self, code: str) -> list[ast.stmt]:
        return [
            node
            for node in ast.walk(ast.parse(code))
            if isinstance(node, ast.Expr | ast.Assign) and self._is_call(node.value)
        ]

    def _is_call(self, value: ast.expr) -> bool:
        call = value.value if isinstance(value, ast.Await) else value
        return isinstance(call, ast.Call) and ast.unparse(call.func) == self.call


@dataclass(frozen=True, slots=True)
class Replace:
    """An expression of the definition, however it is laid out, becomes another one."""

    expression: str
    by: str

    def apply(self, code: str) -> str:
        wanted = ast.dump(ast.parse(self.expression, mode="eval").body)
        nodes = (node for node in ast.walk(ast.parse(code)) if isinstance(node, ast.expr))
        spans = [_span(code, node) for node in nodes if ast.dump(node) == wanted]
        return _replace_only(code, spans, self.by)


@dataclass(frozen=True, slots=True)
class ReplaceText:
    """A part of the definition's text, such as a condition in its SQL, becomes another one."""

    text: str
    by: str

    def apply(self, code: str) -> str:
        if code.count(self.text) != 1:
            raise RemovalError(
                f"{self.text!r} is there {code.count(self.text)} times; name it once"
            )
        return code.replace(self.text, self.by)


@dataclass(frozen=True, slots=True)
class Removal:
    """A mechanism, how it is removed, and which test notices."""

    name: str
    """The dotted name of a function, method or constant, its module included."""
    mutation: Skip | Replace | ReplaceText
    test: str

    @property
    def path(self) -> str:
        """The module's file, relative to the root."""
        return self._split()[0]

    def apply(self, source: str) -> str:
        """The module's text without the mechanism.

        Raises:
            RemovalError: the definition or the mechanism is not there exactly once.
        """
        start, end = _span(source, _definition(ast.parse(source), self._split()[1]))
        line_start = source.encode().rfind(b"\n", 0, start) + 1
        raw = source.encode()
        indent = raw[line_start:start].decode()
        # A definition of a class parses by itself once it is the body of something.
        code = f"if True:\n{indent}{raw[start:end].decode()}" if indent else raw[start:end].decode()
        try:
            mutated = self.mutation.apply(code)
        except RemovalError as problem:
            raise RemovalError(f"{self.name}: {problem}") from None
        if indent:
            mutated = mutated.removeprefix(f"if True:\n{indent}")
        return raw[:start].decode() + mutated + raw[end:].decode()

    def _split(self) -> tuple[str, list[str]]:
        parts = self.name.split(".")
        for length in range(len(parts) - 1, 0, -1):
            path = "/".join(parts[:length]) + ".py"
            if (ROOT / path).is_file():
                return path, parts[length:]
        raise RemovalError(f"{self.name}: there is no such module")


def _definition(tree: ast.AST, names: list[str]) -> ast.AST:
    """The function, method or assignment of this qualified name.

    Raises:
        RemovalError: there is none.
    """
    for name in names:
        inner = [node for node in ast.iter_child_nodes(tree) if name in _names_of(node)]
        if len(inner) != 1:
            raise RemovalError(
                f"{'.'.join(names)} is defined {len(inner)} times; name what is there"
            )
        tree = inner[0]
    return tree


def _names_of(node: ast.AST) -> list[str]:
    match node:
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
            return [node.name]
        case ast.AnnAssign(target=ast.Name(id=name)) | ast.Assign(targets=[ast.Name(id=name)]):
            return [name]
        case _:
            return []


def _span(code: str, node: ast.AST) -> Span:
    lines = code.encode().splitlines(keepends=True)
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line))
    return starts[node.lineno - 1] + node.col_offset, starts[
        node.end_lineno - 1
    ] + node.end_col_offset  # type: ignore[attr-defined]


def _replace_only(code: str, spans: list[Span], by: str) -> str:
    if len(spans) != 1:
        raise RemovalError(f"its mechanism is there {len(spans)} times; name what is there once")
    [(start, end)] = spans
    raw = code.encode()
    return raw[:start].decode() + by + raw[end:].decode()


REMOVALS: Final = (
    Removal(
        "service.results.ingest._is_awaited",
        Replace("job.state == JobState.LEASED or result.attempt == job.attempt", "True"),
        "tests/service/results/test_ingest.py::test_an_attempt_that_comes_twice_counts_once",
    ),
    Removal(
        "service.sessions.actions._settle",
        Skip("pass_turn"),
        "tests/service/sessions/test_group_runs.py::test_a_run_that_nobody_takes_holds_nobody_up",
    ),
    Removal(
        "service.jobs.actions.finish",
        Skip("queue.remove"),
        "tests/service/jobs/test_endings.py::test_a_settled_job_leaves_no_row",
    ),
    Removal(
        "service.jobs.actions.finish",
        Skip("queue.remove"),
        "tests/service/jobs/test_queue_machine.py::TestQueue",
    ),
    Removal(
        "service.jobs.actions.finish",
        Skip("queue.remove"),
        "tests/service/results/test_ingest.py::test_a_result_that_comes_twice_counts_once",
    ),
    Removal(
        "service.results.ingest._is_awaited",
        Replace("result.fence != job.fence", "False"),
        "tests/service/results/test_ingest.py"
        "::test_a_result_under_an_old_fence_is_kept_as_history_and_never_counts",
    ),
    Removal(
        "service.results.ingest._is_awaited",
        Replace("result.fence != job.fence", "False"),
        "tests/service/jobs/test_queue_machine.py::TestQueue",
    ),
    Removal(
        "service.jobs.sqlite._RENEW",
        ReplaceText("AND fence = ? AND state = 1 AND", "AND ? AND"),
        "tests/service/jobs/test_queue_machine.py::TestQueue",
    ),
    Removal(
        "service.jobs.sqlite._ready",
        ReplaceText("j.state = 0 AND ", ""),
        "tests/service/jobs/test_claims.py::test_no_job_is_dealt_twice",
    ),
    Removal(
        "service.db.tables.runs.job",
        ReplaceText("unique=True", "unique=False"),
        "tests/service/scheduling/test_tick.py"
        "::test_a_tick_that_forgot_the_last_one_queues_nothing_twice",
    ),
    Removal(
        "service.jobs.settle.expire_jobs",
        Replace("queue.find_lost(connection, now_ms=now_ms, limit=GROUP)", "[]"),
        "tests/service/jobs/test_endings.py"
        "::test_a_job_whose_lease_ran_out_is_run_by_another_agent",
    ),
    Removal(
        "service.jobs.claims._Assigner._take",
        Replace("job.held_back_until_ms(who.agent_id) > self.now_ms", "False"),
        "tests/service/jobs/test_endings.py"
        "::test_a_job_that_an_agent_gave_back_goes_to_another_one_first",
    ),
    Removal(
        "service.jobs.unrelayed_pings.PingGate.holds_back",
        Replace("all(until_ms >= needed_ms for until_ms in self._relayed_ms)", "True"),
        "tests/service/jobs/test_unrelayed_pings.py"
        "::test_an_overdue_heartbeat_waits_until_each_connected_agent_has_relayed",
    ),
    Removal(
        "service.scheduling.tick.tick",
        Skip("settle.record_missed"),
        "tests/service/scheduling/test_tick.py"
        "::test_due_times_while_the_service_was_away_are_recorded_as_missed",
    ),
    Removal(
        "service.jobs.sqlite._ADD",
        ReplaceText("random() & 0x3ffffff0", "0"),
        "tests/service/results/test_ingest.py"
        "::test_a_result_from_before_a_restore_does_not_count_for_the_run_with_its_number",
    ),
    Removal(
        "service.jobs.rules.after_lost_lease",
        Replace("job.deliveries >= MOST_DELIVERIES", "False"),
        "tests/service/jobs/test_endings.py::test_the_third_agent_that_dies_on_a_job_ends_the_run",
    ),
    Removal(
        "service.jobs.claims._Assigner.find_repeated",
        Replace("not repeated", "True"),
        "tests/service/jobs/test_claims.py"
        "::test_a_repeated_claim_gets_the_same_jobs_and_a_whole_lease",
    ),
    Removal(
        "service.jobs.long_poll.ClaimQueue.claim",
        Skip("self._release"),
        "tests/service/jobs/test_waiting.py"
        "::test_jobs_dealt_to_a_claim_that_hung_up_meanwhile_go_to_the_next_at_once",
    ),
    Removal(
        "service.jobs.settle.extend_leases_after_gap",
        Skip("store.extend_leases"),
        "tests/service/jobs/test_endings.py"
        "::test_agents_get_time_to_renew_after_the_service_was_away",
    ),
    Removal(
        "agent.outbox.results.DiskSpool.open",
        Skip("self._files.extend"),
        "tests/agent/outbox/test_spool.py::test_a_result_survives_a_restart",
    ),
    Removal(
        "agent.outbox.results.DiskSpool._move_to_disk",
        Skip("self._enforce_limits"),
        "tests/agent/outbox/test_spool.py::test_the_oldest_results_go_when_there_is_no_room",
    ),
    Removal(
        "service.agents.artifacts.ArtifactDoor._put",
        Replace("held != part.first", "False"),
        "tests/service/agents/test_artifacts.py::test_an_upload_goes_on_where_it_broke",
    ),
    Removal(
        "agent.outbox.artifact_sender.ArtifactSender._upload_once",
        Replace("elsewhere.offset", "0"),
        "tests/agent/outbox/test_artifacts.py::test_an_upload_goes_on_in_the_next_process",
    ),
    Removal(
        "agent.outbox.artifact_sender.ArtifactSender._send",
        Skip("self._upload"),
        "tests/agent/outbox/test_artifacts.py::test_files_arrive_before_the_result_that_names_them",
    ),
    Removal(
        "agent.outbox.artifacts.Artifacts._enforce_limits",
        Skip("self._strip"),
        "tests/agent/outbox/test_artifacts.py"
        "::test_the_oldest_files_go_when_there_is_no_room_and_their_result_says_so",
    ),
    Removal(
        "agent.outbox.artifacts.Artifacts.put_back",
        Replace("self._batches.append(batch)", "self._batches.appendleft(batch)"),
        "tests/agent/outbox/test_uploads.py"
        "::test_a_parcel_that_is_always_put_off_holds_up_no_other",
    ),
    Removal(
        "agent.outbox.artifact_files.ArtifactFolder._take_from",
        Replace("self._is_silent(other, own)", "True"),
        "tests/agent/outbox/test_parcel_folder.py"
        "::test_on_a_disk_without_locks_a_living_agent_loses_nothing",
    ),
    Removal(
        "service.agents.artifacts.ArtifactDoor._check",
        Replace("job.fence != place.fence", "False"),
        "tests/service/agents/test_artifacts.py::test_a_file_of_a_claim_that_is_no_more_is_refused",
    ),
    Removal(
        "service.jobs.settle.expire_jobs",
        Replace("queue.find_expired(connection, now_ms=now_ms, limit=GROUP)", "[]"),
        "tests/service/jobs/test_endings.py"
        "::test_a_run_that_nobody_claims_in_six_minutes_is_missed",
    ),
    Removal(
        "service.scheduling.tick.tick",
        Skip("_give_up_where_nobody_is"),
        "tests/service/locations/test_location_health.py"
        "::test_runs_at_a_location_without_agents_are_missed_at_once_and_pile_up_nowhere",
    ),
    Removal(
        "service.locations.health._end_outage",
        Skip("store.end_outage"),
        "tests/service/locations/test_location_health.py"
        "::test_a_location_comes_back_with_its_first_agent",
    ),
    Removal(
        "service.scheduling.actions.plan",
        Skip("end_queued"),
        "tests/service/scheduling/test_tick.py"
        "::test_a_check_that_was_deactivated_runs_no_more_and_its_queued_run_is_missed",
    ),
    Removal(
        "service.jobs.rules.after_release",
        Replace("reason is ReleaseReason.NO_ROOM", "False"),
        "tests/service/locations/test_location_health.py"
        "::test_three_agents_without_room_make_a_run_missed_as_overloaded",
    ),
    Removal(
        "agent.jobs.dispatcher.Dispatcher._work",
        Replace("self._take_blame(run.job, problem)", "raise"),
        "tests/agent/jobs/test_dispatcher.py"
        "::test_our_own_fault_releases_the_job_and_fails_no_check",
    ),
    Removal(
        "service.results.sqlite.state_rows",
        Replace("record.status.judges_target", "True"),
        "tests/service/results/test_ingest.py::test_a_missed_run_does_not_change_a_checks_state",
    ),
    Removal(
        "service.results.ingest._record",
        Replace(
            "min(claimed_ms + _ms(result.started_after_s), now_ms)",
            "int(result.started_at.timestamp() * 1000)",
        ),
        "tests/faults/test_clock_off.py::test_runs_are_stored_by_the_services_clock",
    ),
    Removal(
        "agent.jobs.leases.Leases._lose",
        Skip("held.run.lose"),
        "tests/agent/jobs/test_leases.py::test_a_lost_lease_ends_the_run_without_a_word",
    ),
    Removal(
        "agent.telemetry.health.Pulse.dead_because",
        Replace("self._overdue_s > STUCK_AFTER_S", "False"),
        "tests/agent/telemetry/test_health.py"
        "::test_a_job_far_past_its_deadline_makes_the_agent_not_live",
    ),
    Removal(
        "service.alert_channels.delivery.Delivery._begin",
        Replace(
            '{"attempts": row.attempts + 1, "refusals": row.refusals + 1}',
            '{"attempts": row.attempts + 1, "status": "SUCCESS"}',
        ),
        "tests/faults/test_alerts_kept.py"
        "::test_alerts_that_the_service_died_on_before_the_answer_are_sent_again_in_order",
    ),
    Removal(
        "service.alert_channels.store.list_due",
        Replace("alert_notification.c.serial.in_(_HEADS)", "_OPEN"),
        "tests/service/alert_channels/test_delivery.py"
        "::test_nothing_overtakes_an_alert_that_waits_for_its_next_try",
    ),
    Removal(
        "service.checks.changes.delete",
        Skip("alerting.abandon"),
        "tests/service/alerting/test_deleted_checks.py"
        "::test_a_pager_gets_the_resolve_of_a_check_that_is_deleted_while_it_fails",
    ),
    Removal(
        "service.alerting.content.LEVELS",
        ReplaceText("RunStatus.FAILED:", "RunStatus.MISSED: Level.FAILING, RunStatus.FAILED:"),
        "tests/service/alerting/test_alerts.py"
        "::test_attempts_missed_runs_errors_and_test_runs_make_no_alert",
    ),
    Removal(
        "service.locations.health.LocationWatch._judge",
        Replace("out != (one.id in known)", "out"),
        "tests/service/locations/test_location_health.py"
        "::test_a_location_without_agents_makes_one_alert_however_many_checks_run_there",
    ),
    Removal(
        "service.alerting.steps.CheckSteps._is_decided",
        Replace("run.scheduled_ms >= due_ms", "run.scheduled_ms > due_ms"),
        "tests/service/alerting/test_alert_laws.py"
        "::test_a_late_result_of_runs_that_passed_together_says_nothing",
    ),
    Removal(
        "service.subscriptions.mails.StatusMails._take",
        Replace("now_ms + LEASE_MS", "now_ms + (1 << 50)"),
        "tests/service/subscriptions/test_status_mails.py"
        "::test_a_service_that_ends_while_it_sends_loses_no_mail",
    ),
    Removal(
        "service.web.status_page.page_cache.PageCache.find",
        Replace("copy is None", "True"),
        "tests/service/web/status_page/test_page_cache.py"
        "::test_a_page_outlives_its_database_and_says_how_old_it_is",
    ),
    Removal(
        "service.agents.location_keys.LocationKeys.__init__",
        Skip("database.listen"),
        "tests/service/locations/test_locations_api.py"
        "::test_an_ended_key_opens_nothing_from_then_on",
    ),
    Removal(
        "service.agents.api.AgentRequest._require_valid_key",
        Replace("await self.keys.opened_with(self.digest) is None", "False"),
        "tests/service/agents/test_agents_api.py"
        "::test_a_key_that_ends_while_a_call_comes_in_opens_nothing",
    ),
    Removal(
        "service.agents.api.AgentApi._files.serve",
        Replace("Request(request.scope, caller.receive_while_open)", "request"),
        "tests/service/agents/test_artifacts.py"
        "::test_an_upload_whose_key_ends_is_refused_and_keeps_no_file",
    ),
    Removal(
        "service.agents.actions.say_hello",
        Replace("opened.key_id not in good", "False"),
        "tests/service/agents/test_actions.py"
        "::test_a_hello_that_is_written_after_its_key_ended_leaves_no_agent",
    ),
    Removal(
        "service.locations.location_changes.end_key",
        Skip("jobs.release_held_by"),
        "tests/faults/test_key_ended.py"
        "::test_what_an_ended_key_held_runs_elsewhere_long_before_its_lease_ends",
    ),
    Removal(
        "service.checks.secrets.encrypt",
        Skip("encrypt_spec"),
        "tests/service/vault/test_at_rest.py"
        "::test_no_password_stands_in_the_files_however_it_came_and_wherever_it_went",
    ),
    Removal(
        "service.vault.startup._rotate",
        Replace("sum(table.rotate(connection, vault) for table in _TABLES)", "0"),
        "tests/service/vault/test_at_rest.py"
        "::test_what_an_earlier_version_left_in_clear_is_sealed_by_the_next_start",
    ),
    Removal(
        "service.jobs.claims._Assigner._decrypt_all",
        Skip("end_unreadable"),
        "tests/service/jobs/test_opening.py"
        "::test_a_run_whose_secrets_do_not_open_ends_as_our_fault_and_holds_no_other_back",
    ),
)


def main() -> int:
    """0: every test noticed what was removed."""
    chosen = [one for one in REMOVALS if all(word in one.test for word in sys.argv[1:])]
    with tempfile.TemporaryDirectory(prefix="removals-") as folder:
        copy = Path(folder) / "picket"
        shutil.copytree(ROOT, copy, ignore=shutil.ignore_patterns(*_LEFT_OUT))
        unnoticed = [one for one in chosen if not _is_noticed(copy, one)]
    print(f"removed={len(chosen)} noticed={len(chosen) - len(unnoticed)}")  # noqa: T201 - the answer
    return 1 if unnoticed else 0


def _is_noticed(copy: Path, removal: Removal) -> bool:
    path = copy / removal.path
    whole = path.read_text()
    path.write_text(removal.apply(whole))
    try:
        failed = _test_fails(copy, removal.test)
    finally:
        path.write_text(whole)
    print(f"{'noticed' if failed else 'UNNOTICED'}  {removal.test}", flush=True)  # noqa: T201 - what a person watches
    return failed


def _test_fails(copy: Path, test: str) -> bool:
    """Whether it ran and failed; that it cannot run proves nothing."""
    command = [sys.executable, "-B", "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", test]
    run = subprocess.run(command, cwd=copy, capture_output=True, timeout=_LIMIT_S, check=False)
    return run.returncode == 1


if __name__ == "__main__":
    sys.exit(main())
