"""PNG files of 8 bits, written from rows of bytes and read back."""
import struct
import zlib


def chunk(kind, body):
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))


def png(height, width, rows, color_type):
    """color_type 0: grey, 2: colours, 3: a palette of all levels of grey."""
    head = struct.pack(">IIBBBBB", width, height, 8, color_type, 0, 0, 0)
    palette = chunk(b"PLTE", bytes(i // 3 for i in range(768))) if color_type == 3 else b""
    data = zlib.compress(b"".join(b"\0" + bytes(row) for row in rows))
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + palette + chunk(b"IDAT", data) +
            chunk(b"IEND", b""))


def read_png(data):
    """Width, height, colour type and the bytes of the rows, which have no filter but 0."""
    width, height, _, kind = struct.unpack(">IIBB", data[16:26])
    body, at = b"", 8
    while at < len(data):
        length = struct.unpack(">I", data[at:at + 4])[0]
        if data[at + 4:at + 8] == b"IDAT":
            body += data[at + 8:at + 8 + length]
        at += length + 12
    raw, step = zlib.decompress(body), width * (3 if kind == 2 else 1)
    return width, height, kind, [raw[y * (step + 1) + 1:(y + 1) * (step + 1)]
                                 for y in range(height)]
