"""Readers of Iceberg tables who would learn of hidden datasets, or read files that are not for them (ICEBERG-3,
ICEBERG-13 to ICEBERG-16).
"""

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from botocore.auth import S3SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

from odf_iceberg import versions
from odf_iceberg.tables import BUCKET, folder_of
from odf_node.http.callers import secret_hash_of
from odf_node.records.access import AccessToken
from odf_protocol import events
from odf_protocol.multihash import Multihash
from odf_protocol.timestamp import Timestamp
from support.event_loop import in_loop
from support.iceberg_node import corrected_chain, create_node, keep, read_table
from support.offers import CITY_SCHEMA, NOW
from support.secretive_node import FRIEND_TOKEN, Answer, SecretiveNode, Stranger

TABLES = "/_iceberg/v1/namespaces/odf/tables"


@pytest.fixture
def made(tmp_path: Path) -> Iterator[SecretiveNode]:
    made = create_node(tmp_path)
    with closing(made.node):
        yield made


@dataclass
class Signer:
    """A reader of S3 with some credentials: botocore's own signatures."""

    access_key: str
    secret: str

    @classmethod
    async def load(cls, stranger: Stranger, table: str, token: str | None) -> "Signer":
        loaded = await replace(stranger, token=token).ask("GET", f"{TABLES}/{table}")
        assert loaded.status == 200, loaded
        config = loaded.json()["config"]
        return cls(config["s3.access-key-id"], config["s3.secret-access-key"])

    def sign(self, stranger: Stranger, path: str, method: str = "GET", region: str = "us-east-1") -> dict[str, str]:
        request = AWSRequest(method, stranger.url + path)
        S3SigV4Auth(Credentials(self.access_key, self.secret), "s3", region).add_auth(request)
        return dict(request.headers.items())

    async def ask(self, stranger: Stranger, path: str, method: str = "GET", **changes: str) -> Answer:
        headers = {**self.sign(stranger, path, method), **changes}
        return await replace(stranger, token=None).ask(method, path, **headers)


def files_of(made: SecretiveNode) -> list[str]:
    """Addresses of every kind of file of the hidden dataset, and one of each that it does not have."""
    slices = [*made.files, Multihash.of_sha3_256(b"none")]
    names = [f"slices/{each}.parquet" for each in slices]
    names += ["current/3.metadata.json", "current/0.list.avro", "changes/0-1-1.avro", "deletes/0-1.parquet", "nothing"]
    return [f"/{BUCKET}/{folder_of(made.hidden.id)}/{name}" for name in names]


async def told_of_hidden(stranger: Stranger, made: SecretiveNode) -> list[Any]:
    names = ("hidden.data", "HIDDEN.data", "hidden.data__changes", "no.such.data", "no%20such%20name", "a__b__changes")
    told: list[Any] = [await stranger.ask("GET", f"{TABLES}/{name}") for name in names]
    told += [await stranger.ask("HEAD", f"{TABLES}/{name}") for name in names]
    told.append(await stranger.ask("GET", TABLES))
    token = stranger.token
    signer = await Signer.load(stranger, "shown.data", token)
    for path in files_of(made):
        told += [
            await stranger.ask("GET", path),
            await signer.ask(stranger, path),
            await signer.ask(stranger, path, "HEAD"),
        ]
    return [(each.status, each.body, sorted(each.headers.items())) for each in told]


@in_loop
async def test_hidden_dataset_is_as_one_that_is_not_there_iceberg_3(made: SecretiveNode, tmp_path: Path) -> None:
    bare = SecretiveNode.create(tmp_path / "bare", holds_it=False)
    bare.node.clock = made.node.clock
    with closing(bare.node):
        told = []
        for each in (made, bare):
            async with each.served() as stranger:
                told.append([await told_of_hidden(replace(stranger, token=t), made) for t in (stranger.token, None)])
        assert told[0] == told[1]


@in_loop
async def test_owner_of_a_token_reads_what_it_is_for_iceberg_13(made: SecretiveNode) -> None:
    async with made.served() as stranger:
        assert len(await read_table(stranger.url, "hidden.data", token=FRIEND_TOKEN)) == 6
        signer = await Signer.load(stranger, "hidden.data", FRIEND_TOKEN)
        for path in files_of(made)[:1]:
            assert (await signer.ask(stranger, path)).status == 200
            assert (await signer.ask(stranger, path, "HEAD")).status == 200
            assert (await signer.ask(stranger, path, Range="bytes=-4")).body == b"PAR1"


@in_loop
async def test_revoked_token_opens_no_file_any_more_iceberg_16(made: SecretiveNode) -> None:
    async with made.served() as stranger:
        signer = await Signer.load(stranger, "hidden.data", FRIEND_TOKEN)
        path = files_of(made)[0]
        assert (await signer.ask(stranger, path)).status == 200
        made.node.store.revoke_token(FRIEND_TOKEN[4:9], NOW)
        absent = await signer.ask(stranger, path)
        assert (absent.status, absent.body) == (404, (await stranger.ask("GET", path)).body)


@in_loop
async def test_expired_token_opens_no_file_iceberg_16(made: SecretiveNode) -> None:
    secret = "odf_expiring_0123456789"
    expires = Timestamp(made.node.clock.now().seconds + 3600)
    made.node.store.put_token(
        AccessToken(
            id="expiring", secret_hash=secret_hash_of(secret), label="", scopes=("read",), created_at=NOW,
            expires_at=expires,
        )
    )  # fmt: skip
    async with made.served() as stranger:
        signer = await Signer.load(stranger, "hidden.data", secret)
        assert (await signer.ask(stranger, files_of(made)[0])).status == 200
        made.node.store.revoke_token("expiring", NOW)
        assert (await signer.ask(stranger, files_of(made)[0])).status == 404


@in_loop
async def test_forged_signatures_are_403_iceberg_15(made: SecretiveNode) -> None:
    async with made.served() as stranger:
        path, other = files_of(made)[:2]
        signer = await Signer.load(stranger, "hidden.data", FRIEND_TOKEN)
        nobody = await Signer.load(stranger, "shown.data", None)
        good = signer.sign(stranger, path)
        key_of_friend = signer.access_key.partition(".")[2].partition(".")[0]
        assert key_of_friend == secret_hash_of(FRIEND_TOKEN).hex()
        forgers = [
            replace(signer, secret="0" * 64),
            replace(nobody, access_key=signer.access_key),
            replace(signer, access_key=nobody.access_key),
            replace(signer, access_key=f"{signer.access_key}0"),
            replace(signer, access_key=f"ODF.{key_of_friend}.99999999999999999"),
            replace(signer, access_key="AKIAIOSFODNN7EXAMPLE"),
        ]
        told = [await each.ask(stranger, path) for each in forgers]
        authorization = good["Authorization"]
        changed = [
            {"X-Amz-Date": "20200101T000000Z"},
            {"X-Amz-Date": "no time"},
            {"x-amz-content-sha256": "another"},
            {"Authorization": authorization[:-1] + ("0" if authorization[-1] != "0" else "1")},
            {"Authorization": authorization.replace("host;", "")},
            {"Authorization": authorization.replace("SignedHeaders=", "SignedHeaders=x-not-there;")},
            {"Authorization": f"{authorization}, {authorization}"},
            {"Authorization": "AWS4-HMAC-SHA256 Credential=a/b/c"},
            {"Authorization": "AWS4-HMAC-SHA256 " + "a" * 4000},
        ]
        told += [await replace(stranger, token=None).ask("GET", path, **{**good, **each}) for each in changed]
        told.append(await replace(stranger, token=None).ask("GET", other, **good))  # of another file
        told.append(await replace(stranger, token=None).ask("HEAD", path, **good))
        assert {each.status for each in told} == {403}
        assert all(b"PAR1" not in each.body for each in told)
        assert (await replace(stranger, token=None).ask("GET", path, **good)).status == 200


@in_loop
async def test_old_requests_and_old_credentials_are_403_iceberg_15(made: SecretiveNode) -> None:
    async with made.served() as stranger:
        signer = await Signer.load(stranger, "hidden.data", FRIEND_TOKEN)
        path = files_of(made)[0]
        good = signer.sign(stranger, path)
        clock = made.node.clock
        issued = await Signer.load(stranger, "hidden.data", FRIEND_TOKEN)

        @dataclass
        class Later:
            seconds: int

            def now(self) -> Timestamp:
                return Timestamp(clock.now().seconds + self.seconds)

    for later in (16 * 60, -16 * 60, 13 * 3600):
        made.node.clock = Later(later)
        async with made.served() as stranger:
            assert (await replace(stranger, token=None).ask("GET", path, **good)).status == 403
            assert (await issued.ask(stranger, path)).status == 403


@in_loop
async def test_files_that_no_table_has_are_404_iceberg_14(made: SecretiveNode) -> None:
    folder = f"/{BUCKET}/{folder_of(made.hidden.id)}"
    names = [
        "current/9.list.avro",
        "current/99999999999.list.avro",
        "current/-1.list.avro",
        "current/0.deletes.avro",
        "changes/0.deletes.avro",
        "current/2.metadata.json",
        "current/1-2-2.avro",
        "current/0-2-1.avro",
        "current/0-0-1.avro",
        "deletes/0-0.parquet",
        "deletes/0-1.parquet",
        "slices/f1620.parquet",
        "slices/../../../keys/node.pem",
        "slices/%2e%2e%2fkeys.parquet",
        "current/%D9%A0.list.avro",
        "%ff",
    ]
    async with made.served() as stranger:
        signer = await Signer.load(stranger, "hidden.data", FRIEND_TOKEN)
        for name in names:
            assert (await replace(stranger, token=FRIEND_TOKEN).ask("GET", f"{folder}/{name}")).status in (400, 404), (
                name
            )
        for path in (f"/{BUCKET}/no-identity/x", f"/{BUCKET}/{'f' * 5000}/x"):
            assert (await signer.ask(stranger, path)).status == 404
        assert (await signer.ask(stranger, f"{folder}/current/0.list.avro", Range="bytes=999999-")).status == 416


@in_loop
async def test_odd_numbers_of_pages_are_400_iceberg_2(made: SecretiveNode) -> None:
    async with made.served() as stranger:
        for size in ("0", "-1", "x", "1" * 40, "%D9%A1"):
            answer = await stranger.ask("GET", f"{TABLES}?pageSize={size}")
            assert (answer.status, answer.json()["error"]["code"]) == (400, 400)
        for namespace in ("other", "odf%1F%1F", "..", "%00"):
            assert (await stranger.ask("GET", f"/_iceberg/v1/namespaces/{namespace}/tables/x")).status == 404


@in_loop
async def test_schemas_without_end_are_no_table_iceberg_5(made: SecretiveNode, monkeypatch: pytest.MonkeyPatch) -> None:
    """A thousand schemas of a thousand columns took 23 seconds and 600 MB of the daemon for each who asked."""
    chain = corrected_chain(made)
    made.node.store.set_published(chain.id, True)
    inside = events.DataTypeList(
        item_type=events.DataTypeStruct(
            fields=tuple(events.DataField(name=f"c{n}", type=events.DataTypeInt64()) for n in range(20))
        )
    )
    more = events.DataField(name="more", type=events.DataTypeOption(inner=inside))
    *first, one, other = CITY_SCHEMA.fields
    async with made.served() as stranger:
        assert (await stranger.ask("GET", f"{TABLES}/shop.cities")).status == 200
    for places in ((one, other), (other, one), (one, other)):
        chain.add(events.SetDataSchema(schema=replace(CITY_SCHEMA, fields=(*first, *places, more))))
    keep(made, chain)
    for most, status in ((100, 200), (70, 400)):
        monkeypatch.setattr(versions, "MAX_COLUMNS", most)
        async with made.served() as stranger:
            for table in ("shop.cities", "shop.cities__changes"):
                assert (await stranger.ask("GET", f"{TABLES}/{table}")).status == status
