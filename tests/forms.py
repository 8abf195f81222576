"""What happens to a log between the run and us: every form that people hand logs over in, as a change of bytes.

`FORMS` names them. A form is exact (`SAME`): the log in it must give the report of the log itself. Or it loses something
(`LESS`): every claim must be the log's own or be gone.
"""

from __future__ import annotations

import codecs
import html
import json
import random
import re
import textwrap
from collections.abc import Callable

Form = Callable[[str], bytes]
"""A log as text (with its carriage returns) → the bytes that somebody hands over."""

KOREAN = "학습이 메모리 부족으로 죽었습니다. 로그를 붙여 넣습니다."
CHINESE = "训练因为显存不足而失败,日志如下。"
WESTERN = "Mon entraînement s'est arrêté, voilà le journal déjà copié."


def encoded(encoding: str, words: str = "", bom: bytes = b"") -> Form:
    """The log as a program of that encoding saves it, with a line of somebody's own language in front."""

    def form(text: str) -> bytes:
        return bom + ((words + "\n" if words else "") + text).encode(encoding, "replace")

    return form


def text_form(change: Callable[[str], str]) -> Form:
    """A form that changes characters, not how they are encoded."""
    return lambda text: change(text).encode("utf-8", "surrogatepass")


def each_line(change: Callable[[str], str]) -> Form:
    """A form that changes every line."""
    return text_form(lambda text: "\n".join(change(line) for line in text.split("\n")))


def prefixed(*prefixes: str) -> Form:
    """Every line with one of `prefixes` in front, in turn."""

    def change(text: str) -> str:
        lines = text.split("\n")
        return "\n".join(prefixes[number % len(prefixes)] + line for number, line in enumerate(lines))

    return text_form(change)


def framed(text: str) -> str:
    """The frames that a terminal's carriage returns make, one a line."""
    return re.sub(r"\r+(?!\n)", "\n", text)


def screen(text: str) -> str:
    """What stays on a terminal: of each line the last frame, without escapes."""
    plain = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", text.replace("\r\n", "\n"))
    return "\n".join(line.rstrip("\r").split("\r")[-1].rstrip() for line in plain.split("\n"))


def broken(width: int, kept: Callable[[str], str] = framed) -> Form:
    """A window of a fixed width: lines cut there, in the middle of words, with nothing to show it."""

    def change(text: str) -> str:
        out: list[str] = []
        for line in kept(re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", text)).split("\n"):
            out.extend([line[at : at + width] for at in range(0, len(line), width)] or [""])
        return "\n".join(out)

    return text_form(change)


def wrapped(width: int) -> Form:
    """A mail program's hard wrap at words."""

    def change(text: str) -> str:
        out: list[str] = []
        for line in screen(text).split("\n"):
            out.extend(
                textwrap.wrap(line, width, break_long_words=False, drop_whitespace=True, replace_whitespace=False)
                or [""]
            )
        return "\n".join(out)

    return text_form(change)


def records(key: str, **more: str) -> Form:
    """A JSON object a line, as container runtimes and collectors keep logs."""
    return each_line(lambda line: json.dumps({key: line + ("\n" if key == "log" else ""), "time": "t", **more}))


def powershell_append(text: str) -> bytes:
    """UTF-8 up to the middle, then what `>>` of an old PowerShell adds."""
    cut = text.rindex("\n", 0, len(text) * 2 // 3) + 1
    return text[:cut].encode() + text[cut:].replace("\n", "\r\n").encode("utf-16-le")


def utf16_then_utf8(bom: bytes) -> Form:
    """A log that PowerShell began and a UTF-8 program continued."""

    def form(text: str) -> bytes:
        cut = text.rindex("\n", 0, len(text) * 2 // 3) + 1
        return bom + text[:cut].replace("\n", "\r\n").encode("utf-16-le") + text[cut:].encode()

    return form


def stray_bytes(text: str) -> bytes:
    """Lines of bytes that are no UTF-8, as a native library prints a name."""
    lines = text.encode().split(b"\n")
    return b"\n".join(
        line + b"\n\xff\xc3(" if number % 3 == 2 and line[:1].isalnum() else line for number, line in enumerate(lines)
    )


def nul_block(text: str) -> bytes:
    """A disk that lost power: a block of NUL bytes in front."""
    return b"\0" * 4096 + text.encode().replace(b"\n", b"\0\n")


def coloured(text: str) -> str:
    """Colour on each line, as loggers and `FORCE_COLOR` put it."""
    return "\n".join(f"\x1b[1;31m{line}\x1b[0m\x1b[K" if line.strip() else line for line in text.split("\n"))


def but_bars(change: Callable[[str], str]) -> Form:
    """A form that changes the lines in which no bar is drawn."""
    return each_line(lambda line: line if "%|" in line else change(line))


def typescript(text: str) -> str:
    """What `script` writes."""
    body = re.sub(r"\r*\n", "\r\n", text)
    return (
        'Script started on 2026-02-03 04:05:06+00:00 [COMMAND="python run.py config.yaml" TERM="xterm-256color"]\n'
        f"\x1b[?2004h{body}\r\nScript done on 2026-02-03 05:05:06+00:00\n"
    )


def position_one(text: str) -> str:
    """Bars one line lower, as a second bar is drawn."""
    return re.sub(r"\r(?=[^\r\n]*%\|)([^\r\n]*)", lambda found: f"\n\r{found[1]}\x1b[A", text)


def quoted_mail(text: str) -> str:
    """A reply to a mail with the log in it."""
    return "On Tue, 3 Feb 2026 at 04:05, A. Person wrote:\n" + "\n".join("> " + line for line in text.split("\n"))


def typographic(text: str) -> str:
    """Quotes as a word processor sets them."""
    text = re.sub(r'"([^"\n]*)"', "\u201c\\1\u201d", text)
    return text.replace("'", "\u2019")


def doubled(text: str, *, by_frame: bool) -> str:
    """stderr twice, write by write, as AI Toolkit's own `--log` had it until July 2026.

    CPython up to 3.12 writes a code line in pieces, so the pieces come twice on one line; later ones write a frame whole.
    """
    text = re.sub(r"\r[^\r\n\x1b]*%\|[^\r\n\x1b]*\]", lambda found: found[0] * 2, text)
    whole = re.compile(r"Traceback \(most recent call last\):\n(?:  [^\n]*\n)+[^\n]*\n?")
    return whole.sub(lambda found: _doubled_trace(found[0], by_frame=by_frame), text)


def _doubled_trace(trace: str, *, by_frame: bool) -> str:
    lines = trace.splitlines()
    out = [(lines[0] + "\n") * 2]
    for line, after in zip(lines[1:], [*lines[2:], ""], strict=True):
        if line.startswith("  File "):
            has_code = after.startswith("    ")
            out.append(f"{line}\n{after}\n" * 2 if by_frame and has_code else (line + "\n") * 2)
        elif line.startswith("    "):
            if not by_frame:
                out.append("    " * 2 + line.strip() * 2 + "\n\n")
        else:
            error = None if by_frame else re.match(r"([\w.]*?)\.?(\w+(?:Error|Exception))(?:(: )(.*))?$", line)
            if error is None:
                out.append((line + "\n") * 2)
            else:
                module = error[1] * 2 + ".." if error[1] else ""
                out.append(module + error[2] * 2 + (error[3] or "") * 2 + (error[4] or "") * 2 + "\n\n")
    return "".join(out)


def traceback_of(text: str) -> tuple[str, str, str]:
    """(what stands before, the last traceback, what stands behind)."""
    at = text.rfind("Traceback (most recent call last):\n")
    if at == -1:
        return text, "", ""
    found = re.compile(r"Traceback[^\n]*\n(?: [^\n]*\n)+[^\n]*\n?").match(text, at)
    end = found.end() if found else len(text)
    return text[:at], text[at:end], text[end:]


OTHER = """Exception in thread Thread-7 (_pin_memory_loop):
Traceback (most recent call last):
  File "/usr/lib/python3.10/threading.py", line 1016, in _bootstrap_inner
    self.run()
  File "/usr/lib/python3.10/threading.py", line 953, in run
    self._target(*self._args, **self._kwargs)
  File "/opt/ai-toolkit/venv/lib/python3.10/site-packages/torch/utils/data/_utils/pin_memory.py", line 55, in _pin_memory_loop
    do_one_step()
EOFError
"""


def woven_lines(text: str) -> str:
    """Two threads' tracebacks, their lines in turn."""
    before, trace, after = traceback_of(text)
    if not trace:
        return text
    one, other = trace.splitlines(True), OTHER.splitlines(True)
    mixed = "".join(a + b for a, b in zip(one, other, strict=False))
    return before + mixed + "".join(one[len(other) :]) + after


def woven_letters(text: str) -> str:
    """Two threads' tracebacks, letter by letter: all that is in them is lost."""
    before, trace, after = traceback_of(text)
    rng = random.Random(7)
    one, other = list(trace), list(OTHER)
    out: list[str] = []
    while one and other:
        side = one if rng.random() < 0.6 else other
        out.append(side.pop(0))
    return before + "".join(out) + "".join(one) + "".join(other) + after if trace else text


def eight_ranks(text: str) -> str:
    """Eight processes' tracebacks at once, each line with its rank."""
    before, trace, after = traceback_of(text)
    if not trace:
        return text
    rng = random.Random(3)
    queues = [[f"[rank{rank}]: {line}" for line in trace.splitlines(True)] for rank in range(8)]
    out: list[str] = []
    while any(queues):
        queue = rng.choice([queue for queue in queues if queue])
        out.append(queue.pop(0))
    return before + "".join(out) + after


def boxed(text: str, *, ascii_only: bool = False, width: int = 100) -> str:
    """The traceback as rich.traceback draws it: a box with a few lines of code around each failing one."""
    before, trace, after = traceback_of(text)
    if not trace:
        return text
    left, right, top, corners, mark = ("|", "|", "-", "++++", ">") if ascii_only else ("│", "│", "─", "╭╮╰╯", "❱")
    inner = width - 4
    title = " Traceback (most recent call last) "
    rows = [corners[0] + title.center(width - 2, top) + corners[1]]

    def row(line: str, *, code: bool = False) -> None:
        # Rich folds a path that is too long, and crops code
        line = line[:inner] if code else line
        for at in range(0, max(1, len(line)), inner):
            rows.append(f"{left} {line[at : at + inner]:{inner}} {right}")

    error = ""
    for line in trace.splitlines()[1:]:
        frame = re.match(r'  File "(.+)", line (\d+), in (\S+)', line)
        if frame:
            if len(rows) > 1:
                row("")
            row(f"{frame[1]}:{frame[2]} in {frame[3]}")
            row("")
            number = int(frame[2])
        elif line.startswith("    "):
            if set(line.strip()) <= set("~^"):
                continue
            row(f"  {number - 1:>5}     before = 1", code=True)
            row(f"{mark} {number:>5}     {line.strip()}", code=True)
            row(f"  {number + 1:>5}     after = 2", code=True)
        else:
            error += line + "\n"
    rows.append(corners[2] + top * (width - 2) + corners[3])
    return before + "\n".join(rows) + "\n" + error + after


def retyped(text: str) -> str:
    """Somebody's own hand: the message that killed it, with typos in the words and units lost."""
    found = re.findall(r"CUDA out of memory\. Tried to allocate [^\n]*", text)
    if not found:
        return text
    message = found[-1].replace("allocated", "alocated").replace("GPU", "GPY", 1)
    return re.sub(r"(\d) GiB( is allocated| is reserved)", r"\1\2", message) + "\n"


SAME: dict[str, Form] = {
    # encodings
    "UTF-8 with stray bytes": stray_bytes,
    "UTF-8 with BOM": encoded("utf-8", bom=codecs.BOM_UTF8),
    "UTF-16 LE with BOM": encoded("utf-16-le", bom=codecs.BOM_UTF16_LE),
    "UTF-16 BE with BOM": encoded("utf-16-be", bom=codecs.BOM_UTF16_BE),
    "UTF-16 LE": encoded("utf-16-le"),
    "UTF-16 BE": encoded("utf-16-be"),
    "UTF-32": encoded("utf-32"),
    "cp949": encoded("cp949", KOREAN),
    "cp1252": encoded("cp1252", WESTERN),
    "GBK": encoded("gbk", CHINESE),
    "UTF-8, then UTF-16 of a PowerShell append": powershell_append,
    "UTF-16, then UTF-8": utf16_then_utf8(codecs.BOM_UTF16_LE),
    "UTF-16 without BOM, then UTF-8": utf16_then_utf8(b""),
    "NUL bytes": nul_block,
    "CRLF": text_form(lambda text: re.sub(r"\r*\n", "\r\n", text)),
    "CR CR LF": text_form(lambda text: re.sub(r"\r*\n", "\r\r\n", text)),
    "CRLF in places": text_form(lambda text: re.sub(r"(\n[^\n]*)\n", r"\1\r\n", text)),
    "CR only": text_form(lambda text: re.sub(r"\r*\n", "\r", text)),
    # terminals
    "ANSI colour": text_form(coloured),
    "a mark in front of each line": each_line(lambda line: "\ufeff" + line),
    "directions around each line": each_line(lambda line: f"\u202a{line}\u202c"),
    "zero widths in the words": but_bars(lambda line: line.replace("o", "o\u200b").replace(" ", " \u2060")),
    "colour in the words": but_bars(lambda line: line.replace("o", "o\x1b[1m").replace(" ", " \x1b[0;31m")),
    "script": text_form(typescript),
    "bars at position 1": text_form(position_one),
    "ASCII bars": text_form(lambda text: re.sub("[▏▎▍▌▋▊▉█]", "#", text)),
    # prefixes
    "docker timestamps": prefixed("2026-02-03T04:05:06.123456789Z "),
    "Kubernetes": prefixed("2026-02-03T04:05:06.123456789Z stdout F ", "2026-02-03T04:05:06.123456789Z stderr F "),
    "kubectl --prefix --timestamps": prefixed("[pod/train-0/main] 2026-02-03T04:05:06.123456789Z "),
    "RunPod": prefixed("2026-02-03T04:05:06.123456789Z ", "2026-02-03T04:05:07Z "),
    "Vast": prefixed("[2026-02-03 04:05:06] "),
    "Modal": prefixed("Feb 03  04:05:06.123  ", "Feb 03  04:05:07.003  "),
    "Modal, ISO": prefixed("2026-02-03 04:05:06+00:00 ", "2026-02-03 04:05:06.123+09:00 "),
    "journald": prefixed("Feb 03 04:05:06 gpu-box python[4711]: "),
    "journald, short-iso": prefixed("2026-02-03T04:05:06+0900 gpu-box python3[4711]: "),
    "journald, short-precise": prefixed("Feb 03 04:05:06.123456 gpu-box run.sh[4711]: "),
    "syslog": prefixed("<13>Feb  3 04:05:06 gpu-box aitk: ", "Feb  3 04:05:06 gpu-box aitk: "),
    "docker compose": prefixed("aitk-1  | "),
    "docker compose with timestamps": prefixed("aitk-1  | 2026-02-03T04:05:06.123456789Z "),
    "Docker's JSON": records("log", stream="stdout"),
    "journald's JSON": records("MESSAGE", _PID="4711"),
    "a cloud collector's JSON": records("textPayload", severity="INFO"),
    "ranks": prefixed("[rank0]: "),
    "subprocess": prefixed("subprocess | "),
    "ts": prefixed("Feb 03 04:05:06 "),
    # pastes
    "a code fence": text_form(lambda text: f"Hi, this died.\n\n```text\n{text}\n```\nAny ideas?\n"),
    "a code fence with tildes": text_form(lambda text: f"~~~\n{text}\n~~~\n"),
    "a Discord fence": text_form(lambda text: f"help pls ```py\n{text}```"),
    "quoted mail": text_form(quoted_mail),
    "quoted twice": each_line(lambda line: ">> " + line),
    "HTML": text_form(html.escape),
    "HTML in pre": text_form(lambda text: f"<pre><code>{html.escape(text)}</code></pre>\n"),
    "double-spaced": text_form(lambda text: text.replace("\n", "\n\n")),
    "smart quotes": text_form(typographic),
    "Korean around it": text_form(lambda text: f"{KOREAN}\n\n{text}\n\n어떻게 해야 하나요? 도와주세요.\n"),
    "Chinese around it": text_form(lambda text: f"{CHINESE}\n\n{text}\n\n谢谢大家!\n"),
    "English around it": text_form(
        lambda text: (
            f"Hello everybody. My run stopped with an error, I have a 3090.\n\n{text}\n\nThanks, and sorry for the long post.\n"
        )
    ),
    # interleaving
    "stderr twice, in pieces": text_form(lambda text: doubled(text, by_frame=False)),
    "stderr twice, by frames": text_form(lambda text: doubled(text, by_frame=True)),
    "two threads, line by line": text_form(woven_lines),
    "eight ranks at once": text_form(eight_ranks),
    "Rich's box": text_form(boxed),
    "an ASCII box": text_form(lambda text: boxed(text, ascii_only=True)),
}

LESS: dict[str, Form] = {
    "Rich's narrow box": text_form(lambda text: boxed(text, width=80)),
    "a window of 80 columns": broken(80),
    "a window of 120 columns": broken(120),
    "a bar a line": text_form(framed),
    "a screen": text_form(screen),
    "tmux scrollback of 80 columns": broken(80, screen),
    "tmux scrollback of 132 columns": broken(132, screen),
    "hard wraps at 72": wrapped(72),
    "hard wraps at 80": wrapped(80),
    "two threads, letter by letter": text_form(woven_letters),
    "the head": text_form(lambda text: text[: len(text) // 2]),
    "the tail": text_form(lambda text: text[len(text) // 2 :]),
    "the last kilobyte": text_form(lambda text: text[-1000:]),
}
