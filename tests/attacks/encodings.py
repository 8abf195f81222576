"""Bytes and encodings: what no text is, and text that is not what it seems."""

from __future__ import annotations

import codecs

from tests.attacks.case import DIED, FAILING, KIND, SIZES, log

GPU = {KIND: "gpu_oom"}
_WIDE = ("utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be")
_BOMS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE, codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE)

ATTACKS = [
    log("empty", b"", 3, tells="empty"),
    log("one blank", b" ", 3, tells="empty"),
    log("one line feed", b"\n", 3, tells="empty"),
    log("line feeds only", b"\r\n" * 5000, 3, tells="empty"),
    log("one letter", b"x", 3),
    log("one NUL", b"\0", 3),
    log("NULs only", b"\0" * 100_000, 3),
    log(
        "a NUL between all letters of UTF-8", b"\0".join(DIED.encode()[at : at + 3] for at in range(0, len(DIED), 3)), 1
    ),
    log("NULs in front", b"\0" * 4000 + DIED.encode(), 1, says=GPU),
    log("NULs in the middle of the error", DIED.replace("out of", "out\0 of").encode(), 1, says=GPU),
    log("every byte", bytes(range(256)) * 40, 3),
    log("every byte behind a log", DIED.encode() + bytes(range(256)) * 4, 3, tells="binary data"),
    log("high bytes only", bytes(range(128, 256)) * 40, 3),
    log("0xff", b"\xff" * 5000, 3),
    log("stray bytes in every line", DIED.encode().replace(b"\n", b"\xff\xfe\n"), 1, says=GPU),
    log("continuation bytes without a start", b"\x80" * 40 + b"\n" + DIED.encode(), 1, says=GPU),
    log("overlong slashes", b"\xc0\xaf\xe0\x80\xaf\n" + DIED.encode(), 1, says=GPU),
    log("surrogates in UTF-8", b"\xed\xa0\x80\xed\xbf\xbf\n" + DIED.encode(), 1, says=GPU),
    log("beyond Unicode", b"\xf4\x90\x80\x80\xf8\x88\x80\x80\x80\n" + DIED.encode(), 1, says=GPU),
    log("cut in the middle of a letter", DIED.encode() + "한".encode()[:2], 1, says=GPU),
    log("a mark alone", codecs.BOM_UTF8, 3),
    log("a mark of UTF-16 alone", codecs.BOM_UTF16_LE, 3),
    log("a mark twice", codecs.BOM_UTF8 * 2 + DIED.encode(), 1, says=GPU),
    log("a mark in each line", DIED.replace("\n", "\n\ufeff").encode(), 1, says=GPU),
    *(log(f"{name} without a mark", DIED.encode(name), 1, says=GPU) for name in _WIDE[:2]),
    *(
        log(f"{name} with its mark", mark + DIED.encode(name), 1, says=GPU)
        for name, mark in zip(_WIDE, _BOMS, strict=True)
    ),
    *(
        log(f"{name} that lost a byte", (mark + DIED.encode(name))[:-1], 1, says=GPU)
        for name, mark in zip(_WIDE, _BOMS, strict=True)
    ),
    log("a wrong mark", codecs.BOM_UTF16_BE + DIED.encode("utf-16-le"), 3),
    log("a mark of UTF-16 before UTF-8", codecs.BOM_UTF16_LE + DIED.encode(), 1),
    log(
        "lone surrogates in UTF-16", codecs.BOM_UTF16_LE + b"\x00\xd8\n\0" * 30 + DIED.encode("utf-16-le"), 1, says=GPU
    ),
    log(
        "beyond Unicode in UTF-32",
        codecs.BOM_UTF32_LE + b"\xff\xff\xff\x7f" * 30 + DIED.encode("utf-32-le"),
        1,
        says=GPU,
    ),
    log("UTF-16 behind UTF-8", FAILING.encode() + SIZES.encode("utf-16-le"), 1, says=GPU),
    log("UTF-7", "Running 1 job\nCUDA out of memory. Tried to allocate 2.00 GiB\n".encode("utf-7"), 1, says=GPU),
    log("EBCDIC", DIED.encode("cp500"), 3),
    log("Latin letters of one byte", "é à ü\n".encode("latin-1") * 30 + DIED.encode(), 1, says=GPU),
    log("Korean of one code page", "학습이 메모리 부족\n".encode("cp949") * 30 + DIED.encode(), 1, says=GPU),
    log("Chinese of another", "训练因为显存不足\n".encode("gb18030") * 30 + DIED.encode(), 1, says=GPU),
    log("Shift JIS", "メモリ不足\n".encode("shift_jis") * 30 + DIED.encode(), 1, says=GPU),
    *(
        log(f"the start of {what}", start + b"\0\x01\x02" * 400, 3)
        for what, start in (
            *(
                ("a PNG", b"\x89PNG\r\n\x1a\n"),
                ("a JPEG", b"\xff\xd8\xff\xe0"),
                ("a PDF", b"%PDF-1.7"),
                ("an ELF", b"\x7fELF"),
            ),
            *(
                ("a program", b"MZ\x90"),
                ("a pickle", b"\x80\x02c"),
                ("a database", b"SQLite format 3\0"),
                ("weights", b"\x40\0\0\0\0\0\0\0{"),
            ),
        )
    ),
    log("Ctrl-Z in the middle", DIED.replace("\n", "\x1a\n", 1).encode(), 1, says=GPU),
    log("form feeds and vertical tabs", DIED.replace(" ", "\x0b").encode(), 1, says=GPU),
    log("line separators of Unicode only", DIED.replace("\n", "\u2028").encode(), 1),
    log("next lines only", DIED.replace("\n", "\x85").encode(), 1),
    log("carriage returns only", DIED.replace("\n", "\r").encode(), 1, says=GPU),
    log("backspaces over the error", DIED.encode() + b"\x08" * 3000, 1, says=GPU),
]
