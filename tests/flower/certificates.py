"""Certificates and keys for one test: an authority, a server's certificate for loopback, and keys of SuperNodes."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

_DAY = timedelta(days=1)


@dataclass(frozen=True)
class Authority:
    """Signs servers. ``certificate`` is the file that clients trust."""

    key: ec.EllipticCurvePrivateKey
    signed: x509.Certificate
    certificate: Path

    @classmethod
    def make(cls, folder: Path, name: str) -> "Authority":
        key = ec.generate_private_key(ec.SECP384R1())
        subject = _name(name)
        signed = (
            _begun(subject, subject, key.public_key())
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
            .add_extension(_signs_certificates(), critical=True)
            .sign(key, hashes.SHA384())
        )
        return cls(key, signed, _written(folder / f"{name}.pem", signed.public_bytes(serialization.Encoding.PEM)))

    def server(self, folder: Path) -> tuple[Path, Path]:
        """The files of a certificate for this machine's loopback address, and of its key."""
        key = ec.generate_private_key(ec.SECP384R1())
        names = [x509.DNSName("localhost"), x509.IPAddress(ip_address("127.0.0.1"))]
        signed = (
            _begun(_name("superlink"), self.signed.subject, key.public_key())
            .add_extension(x509.SubjectAlternativeName(names), critical=False)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(self.key.public_key()), critical=False)
            .sign(self.key, hashes.SHA384())
        )
        private = key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        return (
            _written(folder / "superlink.pem", signed.public_bytes(serialization.Encoding.PEM)),
            _written(folder / "superlink.key", private),
        )


def node_key(folder: Path, name: str) -> tuple[Path, Path]:
    """The files of a SuperNode's private key, and of the public one that is registered."""
    key = ec.generate_private_key(ec.SECP384R1())
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.OpenSSH, serialization.NoEncryption()
    )
    public = key.public_key().public_bytes(serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH)
    return _written(folder / name, private), _written(folder / f"{name}.pub", public)


def _begun(subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(minutes=5))
        .not_valid_after(now + _DAY)
    )


def _signs_certificates() -> x509.KeyUsage:
    no = dict.fromkeys(
        (
            "content_commitment",
            "key_encipherment",
            "data_encipherment",
            "key_agreement",
            "encipher_only",
            "decipher_only",
        ),
        False,
    )
    return x509.KeyUsage(digital_signature=True, key_cert_sign=True, crl_sign=True, **no)


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def _written(path: Path, content: bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch(mode=0o600)
    path.write_bytes(content)
    return path
