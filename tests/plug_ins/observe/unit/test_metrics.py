"""Figures in Prometheus' text form."""

from odf_node.metrics import Metrics


def test_counter_has_a_line_for_each_set_of_labels() -> None:
    metrics = Metrics()
    metrics.requests.labels(route="/a", method="GET", status="200").inc()
    metrics.requests.labels(route="/a", method="GET", status="200").inc(2)
    metrics.requests.labels(route='/"\n\\', method="GET", status="404").inc()
    lines = metrics.render().splitlines()
    assert "# TYPE odf_node_http_requests_total counter" in lines
    assert 'odf_node_http_requests_total{method="GET",route="/a",status="200"} 3.0' in lines
    assert 'odf_node_http_requests_total{method="GET",route="/\\"\\n\\\\",status="404"} 1.0' in lines
    assert "_created" not in metrics.render()


def test_histogram_counts_up_to_each_bound() -> None:
    metrics = Metrics()
    for seconds in (0.001, 0.005, 0.3, 1000):
        metrics.note_request_seconds("/a", seconds)
    name, lines = "odf_node_http_request_seconds", metrics.render().splitlines()
    assert f'{name}_bucket{{le="0.005",route="/a"}} 2.0' in lines
    assert f'{name}_bucket{{le="0.5",route="/a"}} 3.0' in lines
    assert f'{name}_bucket{{le="60.0",route="/a"}} 3.0' in lines
    assert f'{name}_bucket{{le="+Inf",route="/a"}} 4.0' in lines
    assert f'{name}_count{{route="/a"}} 4.0' in lines
    assert f'{name}_sum{{route="/a"}} 1000.306' in lines


def test_gauge_without_a_figure_is_left_out() -> None:
    metrics = Metrics()
    metrics.add_gauge("here", "Is here.", lambda: 7)
    metrics.add_gauge("gone", "Is not.", lambda: None)
    metrics.add_family("each", "Of each.", lambda: {(("dataset", "a"),): 1, (("dataset", "b"),): 2})
    metrics.add_family("grown_total", "Only grows.", lambda: {(("what", "a"),): 1}, kind="counter")
    metrics.add_family("lost", "Of none.", dict)
    text = metrics.render()
    assert "odf_node_here 7.0\n" in text
    assert "gone" not in text
    assert 'odf_node_each{dataset="a"} 1.0\nodf_node_each{dataset="b"} 2.0\n' in text
    assert '# TYPE odf_node_grown_total counter\nodf_node_grown_total{what="a"} 1.0\n' in text
    assert "lost" not in text
