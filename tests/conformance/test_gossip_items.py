"""Items of gossip and subscriptions in the store of a home."""

from odf_node.records.datasets import Subscription
from odf_node.records.peers import KeptItem
from odf_node.store import MetadataStore
from support.store_values import NOON, creation, dataset_id


def test_items_come_back_oldest_first_without_those_forgotten(store: MetadataStore) -> None:
    items = [KeptItem(bytes([number]) * 32, "head", b"raw %d" % number) for number in (3, 1, 2)]
    store.change_gossip_items(items, [])
    store.change_gossip_items([items[0]], [items[1].id, b"unknown"])
    assert store.list_gossip_items() == (items[0], items[2])


def test_subscription_is_changed_and_ended(store: MetadataStore) -> None:
    first = Subscription(dataset_id=dataset_id(), name="b", url=None, since=NOON)
    other = Subscription(dataset_id=dataset_id(2), name="a", url="https://a", since=NOON)
    changed = Subscription(dataset_id=dataset_id(), name="b", url="https://b", since=NOON)
    for each in (first, other, changed):
        store.put_subscription(each)
    assert store.list_subscriptions() == (other, changed)
    assert [store.delete_subscription(dataset_id()), store.delete_subscription(dataset_id())] == [True, False]
    assert store.list_subscriptions() == (other,)


def test_subscription_takes_the_new_name_of_its_dataset(store: MetadataStore) -> None:
    store.commit(creation(name="old"))
    store.put_subscription(Subscription(dataset_id=dataset_id(), name="old", url=None, since=NOON))
    store.rename_dataset(dataset_id(), "old", "new")
    assert [each.name for each in store.list_subscriptions()] == ["new"]
