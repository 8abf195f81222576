"""What leaves the machine carries no names, tokens or addresses; settings and numbers stay."""

from __future__ import annotations

from postmortem.knowledge.schema import Knowledge
from postmortem.report import build, json_
from postmortem.report.redact import Redactor, redact
from tests.conftest import Analyse
from tests.simulate import config, head


def test_the_same_thing_gets_the_same_label(knowledge: Knowledge) -> None:
    redactor = Redactor(knowledge)
    text = redactor.text("/home/anna/x and /home/bert/y and /home/anna/z")
    assert text == "/home/<user-1>/x and /home/<user-2>/y and /home/<user-1>/z"


def test_secrets_go_and_settings_stay(run: Analyse, knowledge: Knowledge) -> None:
    secret = "hf_" + "a1B2" * 8
    trace = (
        "Traceback (most recent call last):\n"
        '  File "/home/anna/ai-toolkit/run.py", line 90, in main\n'
        f'    download("https://anna:geheim@example.org/x", token="{secret}", to="anna@example.org", at="10.1.2.3")\n'
        "ValueError: no\n"
    )
    log = head(config(datasets__folder_path="C:\\Users\\Anna\\sets")) + "Error running job: no\n" + trace
    plain = json_.render(build(run(log), knowledge))
    hidden = json_.render(redact(build(run(log), knowledge), knowledge))
    for item in ("anna", secret, "geheim", "10.1.2.3", "Users\\\\Anna"):
        assert item not in hidden
    assert "anna" in plain
    assert '"train.batch_size"' in hidden
    assert "1024" in hidden
