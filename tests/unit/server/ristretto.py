"""ristretto255 and the proof of RFC 9497, slow and by the book (RFC 9496, RFC 9380, RFC 9497): a second opinion for the tests."""

from hashlib import sha512

P = 2**255 - 19
ORDER = 2**252 + 27742317777372353535851937790883648493
D = -121665 * pow(121666, -1, P) % P
ROOT = pow(2, (P - 1) // 4, P)  # of -1
CONTEXT = b"OPRFV1-\x01-ristretto255-SHA512"  # mode 1: verifiable
Point = tuple[int, int]  # affine; the curve is complete, so one formula adds all


def add(p: Point, q: Point) -> Point:
    (x1, y1), (x2, y2) = p, q
    t = D * x1 * x2 * y1 * y2 % P
    return (
        (x1 * y2 + x2 * y1) * pow(1 + t, -1, P) % P,
        (y1 * y2 + x1 * x2) * pow(1 - t, -1, P) % P,
    )


def times(n: int, p: Point) -> Point:
    total: Point = (0, 1)
    while n:
        total, p, n = (add(total, p) if n & 1 else total), add(p, p), n >> 1
    return total


def even(x: int) -> int:
    x %= P
    return x if x % 2 == 0 else P - x


def root(u: int, v: int) -> tuple[bool, int]:
    """sqrt(u/v), or sqrt(i u/v) where there is none (RFC 9496, 4.2)."""
    r = u * v**3 * pow(u * v**7, (P - 5) // 8, P) % P
    check, u = v * r * r % P, u % P
    if check in (-u % P, -u * ROOT % P):
        r = r * ROOT % P
    return check in (u, -u % P), even(r)


def decode(data: bytes) -> Point:
    s = int.from_bytes(data, "little")
    if s >= P or s % 2:
        raise ValueError
    u1, u2 = (1 - s * s) % P, (1 + s * s) % P
    v = (-D * u1 * u1 - u2 * u2) % P
    square, r = root(1, v * u2 * u2)
    x = even(2 * s * r * u2)
    y = u1 * r * r * u2 * v % P
    if not square or x * y % P % 2 or y == 0:
        raise ValueError
    return x, y


def encode(p: Point) -> bytes:
    x, y = p
    u1, u2 = (1 + y) * (1 - y) % P, x * y % P
    _, r = root(1, u1 * u2 * u2)
    den1, den2 = r * u1, r * u2
    z_inv = den1 * den2 * x * y % P
    a_minus_d = root(-1 - D, 1)[1]
    if x * y * z_inv % P % 2:
        x, y, den = y * ROOT % P, x * ROOT % P, den1 * pow(a_minus_d, -1, P) % P
    else:
        den = den2
    if x * z_inv % P % 2:
        y = -y % P
    return even(den * (1 - y)).to_bytes(32, "little")


G = decode(bytes.fromhex("e2f2ae0a6abc4e71a884a961c500515f58e30b6aa582dd8db6a65945e08d2d76"))


def to_scalar(message: bytes) -> int:
    tag = b"HashToScalar-" + CONTEXT
    tag += bytes([len(tag)])
    first = sha512(bytes(128) + message + (64).to_bytes(2, "big") + b"\0" + tag).digest()
    return int.from_bytes(sha512(first + b"\1" + tag).digest(), "little") % ORDER


def sized(*parts: bytes) -> bytes:
    return b"".join(len(part).to_bytes(2, "big") + part for part in parts)


def proves(key: bytes, blinded: bytes, evaluated: bytes, proof: bytes) -> bool:
    """VerifyProof of RFC 9497, 2.2.2: whether ``evaluated`` is ``blinded`` under the secret key of ``key``."""
    c, s = (int.from_bytes(half, "little") for half in (proof[:32], proof[32:]))
    seed = sha512(sized(key, b"Seed-" + CONTEXT)).digest()
    weight = to_scalar(sized(seed) + (0).to_bytes(2, "big") + sized(blinded, evaluated) + b"Composite")
    m, z = times(weight, decode(blinded)), times(weight, decode(evaluated))
    t2, t3 = add(times(s, G), times(c, decode(key))), add(times(s, m), times(c, z))
    return c == to_scalar(sized(key, *(encode(point) for point in (m, z, t2, t3))) + b"Challenge")
