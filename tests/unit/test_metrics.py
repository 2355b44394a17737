"""Figures in Prometheus' text form."""

from odf_node.metrics import Metrics


def test_counter_has_a_line_for_each_set_of_labels() -> None:
    metrics = Metrics()
    metrics.requests.add(route="/a", status="200")
    metrics.requests.add(2, route="/a", status="200")
    metrics.requests.add(route='/"\n\\', status="404")
    lines = metrics.render().splitlines()
    assert "# TYPE odf_node_http_requests_total counter" in lines
    assert 'odf_node_http_requests_total{route="/a",status="200"} 3' in lines
    assert 'odf_node_http_requests_total{route="/\\"\\n\\\\",status="404"} 1' in lines


def test_histogram_counts_up_to_each_bound() -> None:
    metrics = Metrics()
    for seconds in (0.001, 0.005, 0.3, 1000):
        metrics.request_seconds.observe(seconds, route="/a")
    name, lines = "odf_node_http_request_seconds", metrics.render().splitlines()
    assert f'{name}_bucket{{route="/a",le="0.005"}} 2' in lines
    assert f'{name}_bucket{{route="/a",le="0.5"}} 3' in lines
    assert f'{name}_bucket{{route="/a",le="60.0"}} 3' in lines
    assert f'{name}_bucket{{route="/a",le="+Inf"}} 4' in lines
    assert f'{name}_count{{route="/a"}} 4' in lines
    assert f'{name}_sum{{route="/a"}} 1000.306' in lines


def test_gauge_without_a_figure_is_left_out() -> None:
    metrics = Metrics()
    metrics.add_gauge("here", "Is here.", lambda: 7)
    metrics.add_gauge("gone", "Is not.", lambda: None)
    metrics.add_family("each", "Of each.", lambda: {(("dataset", "a"),): 1, (("dataset", "b"),): 2})
    metrics.add_family("lost", "Of none.", dict)
    text = metrics.render()
    assert "odf_node_here 7\n" in text
    assert "gone" not in text
    assert 'odf_node_each{dataset="a"} 1\nodf_node_each{dataset="b"} 2\n' in text
    assert "lost" not in text
