"""`python -m tests.docs.removals`: takes each guarantee's mechanism out, and sees its test fail.

It works on a copy of the repository. Words after the command choose removals by part of the test.
"""

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
"""A state machine that fails looks for its shortest story before it says so."""


@dataclass(frozen=True, slots=True)
class Removal:
    """A mechanism as it stands in the code, what stands there without it, and who notices."""

    path: str
    mechanism: str
    without: str
    test: str


REMOVALS: Final = (
    Removal(
        "service/results/ingest.py",
        "    return job.state == JobState.LEASED or result.attempt == job.attempt\n",
        "    return True\n",
        "tests/service/results/test_ingest.py::test_an_attempt_that_comes_twice_counts_once",
    ),
    Removal(
        "service/sessions/actions.py",
        "        pass_turn(connection, session.group_run, now_ms=stopped_ms)\n",
        "        pass\n",
        "tests/service/sessions/test_group_runs.py::test_a_run_that_nobody_takes_holds_nobody_up",
    ),
    Removal(
        "service/jobs/actions.py",
        "    queue.remove(connection, done)\n",
        "",
        "tests/service/jobs/test_endings.py::test_a_settled_job_leaves_no_row",
    ),
    Removal(
        "service/jobs/actions.py",
        "    queue.remove(connection, done)\n",
        "",
        "tests/service/jobs/test_queue_machine.py::TestQueue",
    ),
    Removal(
        "service/jobs/actions.py",
        "    queue.remove(connection, done)\n",
        "",
        "tests/service/results/test_ingest.py::test_a_result_that_comes_twice_counts_once",
    ),
    Removal(
        "service/results/ingest.py",
        "    if result.fence != job.fence:\n        return False\n",
        "",
        "tests/service/results/test_ingest.py"
        "::test_a_result_under_an_old_fence_is_kept_as_history_and_never_counts",
    ),
    Removal(
        "service/results/ingest.py",
        "    if result.fence != job.fence:\n        return False\n",
        "",
        "tests/service/jobs/test_queue_machine.py::TestQueue",
    ),
    Removal(
        "service/jobs/sqlite.py",
        "WHERE id = ? AND fence = ? AND state = 1 AND location_id = ?",
        "WHERE id = ? AND ? AND location_id = ?",
        "tests/service/jobs/test_queue_machine.py::TestQueue",
    ),
    Removal(
        "service/jobs/sqlite.py",
        "WHERE j.state = 0 AND j.location_id = ?",
        "WHERE j.location_id = ?",
        "tests/service/jobs/test_claims.py::test_no_job_is_dealt_twice",
    ),
    Removal(
        "service/db/tables/runs.py",
        "        unique=True,\n        sqlite_where=text(\"source = 'SCHEDULER'\"),",
        "        sqlite_where=text(\"source = 'SCHEDULER'\"),",
        "tests/service/scheduling/test_tick.py"
        "::test_a_tick_that_forgot_the_last_one_queues_nothing_twice",
    ),
    Removal(
        "service/jobs/settle.py",
        "    lost = queue.find_lost(connection, now_ms=now_ms, limit=GROUP)\n",
        "    lost: list[HeldJob] = []\n",
        "tests/service/jobs/test_endings.py"
        "::test_a_job_whose_lease_ran_out_is_run_by_another_agent",
    ),
    Removal(
        "service/jobs/rules.py",
        "    if job.deliveries >= MOST_DELIVERIES:\n",
        "    if False:\n",
        "tests/service/jobs/test_endings.py::test_the_third_agent_that_dies_on_a_job_ends_the_run",
    ),
    Removal(
        "service/jobs/claims.py",
        "        if not repeated:\n",
        "        if True:\n",
        "tests/service/jobs/test_claims.py"
        "::test_a_repeated_claim_gets_the_same_jobs_and_a_whole_lease",
    ),
    Removal(
        "service/jobs/long_poll.py",
        "            await self._release(location_id, jobs)\n",
        "",
        "tests/service/jobs/test_waiting.py"
        "::test_jobs_dealt_to_a_claim_that_hung_up_meanwhile_go_to_the_next_at_once",
    ),
    Removal(
        "service/jobs/settle.py",
        "    store.extend_leases(connection, until_ms=now_ms + _RESTART_GRACE_MS)\n",
        "",
        "tests/service/jobs/test_endings.py"
        "::test_agents_get_time_to_renew_after_the_service_was_away",
    ),
    Removal(
        "agent/outbox/results.py",
        "        self._files.extend(found)\n",
        "",
        "tests/agent/outbox/test_spool.py::test_a_result_survives_a_restart",
    ),
    Removal(
        "agent/outbox/results.py",
        "            await self._enforce_limits()\n        self._bound_memory()",
        "        self._bound_memory()",
        "tests/agent/outbox/test_spool.py::test_the_oldest_results_go_when_there_is_no_room",
    ),
    Removal(
        "service/agents/artifacts.py",
        "        if held != part.first:\n",
        "        if False:\n",
        "tests/service/agents/test_artifacts.py::test_an_upload_goes_on_where_it_broke",
    ),
    Removal(
        "agent/outbox/artifact_sender.py",
        "                first, resets = elsewhere.offset, resets + 1\n",
        "                first, resets = 0, resets + 1\n",
        "tests/agent/outbox/test_artifacts.py::test_an_upload_goes_on_in_the_next_process",
    ),
    Removal(
        "agent/outbox/artifact_sender.py",
        "                await self._upload(path, artifact, batch.lease)\n",
        "                pass\n",
        "tests/agent/outbox/test_artifacts.py::test_files_arrive_before_the_result_that_names_them",
    ),
    Removal(
        "agent/outbox/artifacts.py",
        '                await self._strip(batch, "no room")\n',
        "                pass\n",
        "tests/agent/outbox/test_artifacts.py"
        "::test_the_oldest_files_go_when_there_is_no_room_and_their_result_says_so",
    ),
    Removal(
        "agent/outbox/artifacts.py",
        "            self._out = None\n            self._batches.append(batch)\n",
        "            self._out = None\n            self._batches.appendleft(batch)\n",
        "tests/agent/outbox/test_uploads.py::test_a_parcel_that_is_always_put_off_holds_up_no_other",
    ),
    Removal(
        "agent/outbox/artifact_files.py",
        "            if self._is_silent(other, own):\n",
        "            if True:\n",
        "tests/agent/outbox/test_parcel_folder.py"
        "::test_on_a_disk_without_locks_a_living_agent_loses_nothing",
    ),
    Removal(
        "service/agents/artifacts.py",
        "        if job.fence != place.fence:",
        "        if False:",
        "tests/service/agents/test_artifacts.py::test_a_file_of_a_claim_that_is_no_more_is_refused",
    ),
    Removal(
        "service/jobs/settle.py",
        "    expired = queue.find_expired(connection, now_ms=now_ms, limit=GROUP)\n",
        "    expired: list[HeldJob] = []\n",
        "tests/service/jobs/test_endings.py::test_a_run_that_nobody_claims_in_six_minutes_is_missed",
    ),
    Removal(
        "service/scheduling/tick.py",
        "    _give_up_where_nobody_is(connection, runs, now_ms=now_ms)\n",
        "",
        "tests/service/locations/test_location_health.py"
        "::test_runs_at_a_location_without_agents_are_missed_at_once_and_pile_up_nowhere",
    ),
    Removal(
        "service/locations/health.py",
        "    store.end_outage(connection, location.id)\n",
        "",
        "tests/service/locations/test_location_health.py"
        "::test_a_location_comes_back_with_its_first_agent",
    ),
    Removal(
        "service/scheduling/actions.py",
        "        end_queued(connection, check_id, now_ms=now_ms)\n",
        "",
        "tests/service/scheduling/test_tick.py"
        "::test_a_check_that_was_deactivated_runs_no_more_and_its_queued_run_is_missed",
    ),
    Removal(
        "service/jobs/rules.py",
        "    if reason is ReleaseReason.NO_ROOM:\n",
        "    if False:\n",
        "tests/service/locations/test_location_health.py"
        "::test_three_agents_without_room_make_a_run_missed_as_overloaded",
    ),
    Removal(
        "agent/jobs/dispatcher.py",
        "                self._take_blame(run.job, problem)\n",
        "                raise\n",
        "tests/agent/jobs/test_dispatcher.py::test_our_own_fault_releases_the_job_and_fails_no_check",
    ),
    Removal(
        "service/results/sqlite.py",
        "        if record.status.judges_target\n",
        "",
        "tests/service/results/test_ingest.py::test_a_missed_run_does_not_change_a_checks_state",
    ),
    Removal(
        "service/results/ingest.py",
        "    started_ms = min(claimed_ms + _ms(result.started_after_s), now_ms)\n",
        "    started_ms = int(result.started_at.timestamp() * 1000)\n",
        "tests/faults/test_clock_off.py::test_runs_are_stored_by_the_services_clock",
    ),
    Removal(
        "agent/jobs/leases.py",
        "            held.run.lose()\n",
        "            pass\n",
        "tests/agent/jobs/test_leases.py::test_a_lost_lease_ends_the_run_without_a_word",
    ),
    Removal(
        "agent/telemetry/health.py",
        "        if self._overdue_s > STUCK_AFTER_S:\n",
        "        if False:\n",
        "tests/agent/telemetry/test_health.py::test_a_job_far_past_its_deadline_makes_the_agent_not_live",
    ),
    Removal(
        "service/agents/location_keys.py",
        "        database.listen(LocationKeyEnded, self._forget)\n",
        "",
        "tests/service/locations/test_locations_api.py"
        "::test_an_ended_key_opens_nothing_from_then_on",
    ),
    Removal(
        "service/agents/api.py",
        "        if await self.keys.opened_with(self.digest) is None:\n",
        "        if False:\n",
        "tests/service/agents/test_agents_api.py"
        "::test_a_key_that_ends_while_a_call_comes_in_opens_nothing",
    ),
    Removal(
        "service/agents/api.py",
        "            guarded = Request(request.scope, caller.receive_while_open)\n",
        "            guarded = request\n",
        "tests/service/agents/test_artifacts.py"
        "::test_an_upload_whose_key_ends_is_refused_and_keeps_no_file",
    ),
    Removal(
        "service/agents/actions.py",
        "    if location is None or opened.key_id not in good:\n",
        "    if location is None:\n",
        "tests/service/agents/test_actions.py"
        "::test_a_hello_that_is_written_after_its_key_ended_leaves_no_agent",
    ),
    Removal(
        "service/locations/api.py",
        "    jobs.release_held_by(connection, location_id, let_out, now_ms=scope.now_ms)\n",
        "",
        "tests/faults/test_key_ended.py"
        "::test_what_an_ended_key_held_runs_elsewhere_long_before_its_lease_ends",
    ),
    Removal(
        "service/checks/secrets.py",
        "        spec = encrypt_spec(spec, vault, account_id=account_id, check_id=check_id)\n",
        "        pass\n",
        "tests/service/vault/test_at_rest.py"
        "::test_no_password_stands_in_the_files_however_it_came_and_wherever_it_went",
    ),
    Removal(
        "service/vault/startup.py",
        "    return sum(table.rotate(connection, vault) for table in _TABLES)\n",
        "    return 0\n",
        "tests/service/vault/test_at_rest.py"
        "::test_what_an_earlier_version_left_in_clear_is_sealed_by_the_next_start",
    ),
    Removal(
        "service/jobs/claims.py",
        "        end_unreadable(self.connection, lost, now_ms=self.now_ms)\n",
        "",
        "tests/service/jobs/test_opening.py"
        "::test_a_run_whose_secrets_do_not_open_ends_as_our_fault_and_holds_no_other_back",
    ),
)


def main() -> int:
    """0: every test noticed what was taken away."""
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
    path.write_text(whole.replace(removal.mechanism, removal.without, 1))
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
