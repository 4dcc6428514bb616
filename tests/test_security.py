"""Every sentence of SECURITY.md that promises something, and the tests that hold it."""

from __future__ import annotations

import ast
import os
import re
from pathlib import Path

import pytest

from typed_commands import run

ROOT = Path(__file__).parents[1]
SECURITY = " ".join((ROOT / "SECURITY.md").read_text(encoding="utf-8").split())
HELD = {
    "never runs code from a file": "models/test_folder.py::test_only_types_of_scikit_learn_are_loaded models/test_folder.py::test_what_only_pickle_could_save_is_refused",
    "unpickles nothing but the weights": "test_security.py::test_nothing_is_unpickled_but_tensors",
    "after their cells are counted": "_io/test_tables.py::test_a_workbook_whose_last_cell_is_far_away_is_refused",
    "DuckDB; column names are quoted": "fuzz/test_tables.py::test_a_damaged_file_is_refused_or_read_alike_by_both_readers",
    "JSON, and tensors in safetensors": "fuzz/test_kept_files.py::test_a_file_that_lies_and_whose_checksum_fits_is_refused_or_works",
    "no library of trees reads them": "models/trees/test_forest.py::test_arrays_that_are_no_trees_are_refused models/trees/test_forest.py::test_a_saved_model_predicts_without_the_library",
    "skops, which makes types of scikit-learn alone": "models/test_folder.py::test_only_types_of_scikit_learn_are_loaded",
    "sketches in the format of datasketches": "fuzz/test_kept_files.py::test_a_damaged_file_is_refused_or_harmless",
    "without views, triggers or anything else that runs": "monitoring/test_stores.py::test_a_hostile_folder_is_refused_or_means_nothing",
    "as many steps as its bytes explain": "monitoring/test_stores.py::test_a_file_whose_pages_point_at_one_another_ends",
    "views and computed columns are refused": "cli/test_databases.py::test_nothing_that_a_file_computes_is_read",
    "DuckDB has no access to other files": "cli/test_databases.py::test_a_file_s_tables_reach_no_other_file",
    "stores of experiments": "fuzz/test_kept_files.py::test_a_damaged_file_is_refused_or_harmless",
    "links, pipes or devices": "models/test_folder.py::test_pipes_devices_and_links_are_refused models/test_folder.py::test_a_folder_of_files_that_is_a_link_is_refused",
    "more than 64 MiB": "models/test_folder.py::test_a_huge_description_is_refused_unread",
    "A bundle has the model's card": "report/test_bundle.py::test_a_model_folder_cannot_put_another_file_into_a_bundle",
    "Files carry checksums": "fuzz/test_kept_files.py::test_a_change_of_one_byte_is_refused_or_harmless",
    "Nothing is fetched that was not asked for": "cli/test_no_network.py::test_no_command_opens_a_connection",
    "check it by sha256": "datasets/test_fetch.py::test_a_checksum_that_does_not_match",
    "is refused unless `--allow-remote`": "cli/test_no_network.py::test_a_file_on_another_machine_is_refused",
    "needs the same, also on this machine": "cli/test_databases.py::test_a_server_is_reached_only_where_that_is_allowed",
    "Pages load nothing from a network": "report/test_page.py::test_nothing_in_the_page_points_elsewhere browser/test_page.py::test_no_other_script_can_run",
    "shows the user part of an address": "cli/test_secrets.py::test_no_command_shows_a_secret cli/test_secrets.py::test_who_asks_and_every_value_is_hidden",
    "credentials as HTTP authentication": "monitoring/test_webhook.py::test_credentials_are_authentication_and_looked_up_nowhere",
    "the exit code is the alarm's": "monitoring/test_webhook.py::test_an_odd_answer_is_a_warning_and_the_exit_code_the_alarm_s",
    "redirects are not followed": "monitoring/test_webhook.py::test_a_hook_that_fails_loses_no_batch_and_is_tried_again",
    "listens on this machine alone": "integrations/test_prometheus.py::test_they_are_served",
    "at most 128 at a time": "integrations/test_prometheus.py::test_nobody_waits_for_a_client_that_is_slow",
    "no page of another site can read it": "integrations/test_prometheus.py::test_requests_are_checked",
    "delays nobody": "integrations/test_prometheus.py::test_nobody_waits_for_a_client_that_is_slow",
    "given up after ten seconds": "integrations/test_prometheus.py::test_a_client_may_take_ten_seconds_and_8_kilobytes",
    "readable by their owner alone, whatever the umask": "test_security.py::test_files_are_readable_by_their_owner_alone _io/test_files.py::test_the_owner_alone_reads_a_file_unless_the_file_or_its_folder_says_otherwise",
    "textfile collector": "integrations/test_prometheus.py::test_a_textfile_is_read_by_everyone",
    "a folder of the owner's own": "_io/test_connection.py::test_rows_that_do_not_fit_in_memory_are_written_where_only_their_owner_reads",
    "Ctrl-C, SIGTERM and SIGHUP": "cli/test_interrupts.py::test_a_signal_ends_the_command_and_leaves_nothing",
    "the next command removes it": "cli/test_interrupts.py::test_what_killed_processes_left_is_removed cli/test_interrupts.py::test_a_kill_while_a_folder_is_removed_leaves_no_rows_without_a_lock",
    "groups of fewer than ten people": "cli/test_few_people.py::test_scores_of_few_people_change_nothing counts/test_disclosure.py::test_no_total_less_the_cells_shown_tells_of_few_people",
    "draw no step of fewer": "counts/test_disclosure.py::test_every_step_has_enough_people_and_the_error_is_stated",
    "part people at the same scores": "report/test_bundle.py::test_the_files_of_a_bundle_together_tell_of_nobody",
    "A monitor names no group": "cli/test_monitor.py::test_who_is_alone_in_a_period_changes_nothing_that_is_said_of_it",
    "never the rest of a row": "cli/test_messages_about_rows.py::test_the_rest_of_a_row_is_not_in_the_message",
    "reach HTML and Markdown escaped": "browser/test_page.py::test_names_are_text_and_run_nothing report/test_markdown.py::test_markdown_makes_nothing_of_a_name",
    "GitHub links no name": "report/test_markdown.py::test_github_links_no_name",
    "are shown as text in every command": "cli/test_names_from_data.py::test_every_command_shows_names_as_text",
    "look alike are named in a warning": "cli/test_names_from_data.py::test_groups_that_look_alike_are_told_apart",
    "starts with an apostrophe": "cli/test_names_from_data.py::test_no_text_of_the_scores_is_a_formula",
    "with checksums": "test_requirements.py::test_every_package_of_the_list_has_checksums",
}  # fmt: skip
"""Words of a sentence, and its tests."""


@pytest.mark.parametrize("words", HELD)
def test_a_sentence_has_its_tests(words: str) -> None:
    assert words in SECURITY
    for named in HELD[words].split():
        file, name = named.split("::")
        tree = ast.parse((ROOT / "tests" / file).read_text(encoding="utf-8"))
        assert name in {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}, named


_UNPICKLES = re.compile(
    r"\b(?:c?pickle|dill|joblib|marshal|shelve)\b\.load|allow_pickle=True|\btorch\.load\(.*"
)


def test_nothing_is_unpickled_but_tensors() -> None:
    """Numpy refuses pickles unless it is told otherwise."""
    found = [
        (path.name, line)
        for path in sorted((ROOT / "src").rglob("*.py"))
        for line in _UNPICKLES.findall(path.read_text(encoding="utf-8"))
    ]
    assert found == [("_resnet.py", 'torch.load(path, map_location="cpu", weights_only=True)')]


@pytest.mark.skipif(os.name == "nt", reason="permissions of POSIX")
@pytest.mark.parametrize("umask", [0o000, 0o022])
def test_files_are_readable_by_their_owner_alone(umask: int, tmp_path: Path) -> None:
    """Whatever a command writes, in a process whose files everyone could write to."""
    pytest.importorskip("datasketches")
    rows = [f"{i % 50 / 50},{'fm'[i % 2]},{i % 3 % 2},{i % 7}\n" for i in range(200)]
    people, out = tmp_path / "x.csv", tmp_path / "out"
    people.write_text("p,g,y,age\n" + "".join(rows))
    columns, trained = ["--score", "p", "--group", "g"], ["--target", "y", "--group", "g", "--drop", "p"]
    before = os.umask(umask)
    try:
        for words in (
            ["audit", people, *columns, "--resamples", 0, "--report", out / "p.html", "--out", out / "a.zip"],
            ["train", people, *trained, "--out", out / "model", "--steps", 2],
            ["predict", out / "model", people, "--out", out / "scores.csv"],
            ["monitor", "append", out / "kept", people, *columns],
            ["monitor", "report", out / "kept", "--out", out / "m.html"],
        ):
            done = run(*words, PYTHONWARNINGS="default")
            assert done.returncode == 0, done.stderr
    finally:
        os.umask(before)
    files = {str(path.relative_to(out)): path for path in out.rglob("*") if path.is_file()}
    assert {"p.html", "a.zip", "scores.csv", "m.html"} <= set(files)
    assert re.search(r"monitor\.sqlite", " ".join(files))
    assert {name: oct(path.stat().st_mode & 0o777) for name, path in files.items()} == dict.fromkeys(
        files, "0o600"
    )
