"""What libraries of observers send by: of each answer they get how it went, and nothing that could lead or fill.

Left alone, one of them follows redirects, also into this network, and both read answers without an end.

Source: clause OBSERVE-11 in ``spec/plug-ins/observe.md``.
"""

from http import HTTPStatus
from io import BytesIO
from typing import Any

import requests


class UnreadAnswers(requests.Session):
    """Sends one request for each that is asked for, and lets go of the answer behind its head."""

    def request(self, method: str, url: str, **given: Any) -> requests.Response:  # type: ignore[override]
        """See ``requests.Session``.

        Raises:
            requests.TooManyRedirects: The answer says to ask elsewhere.
        """
        given |= {"allow_redirects": False, "stream": True}
        with super().request(method, url, **given) as answer:
            head = requests.Response()
            head.status_code, head.reason, head.url = answer.status_code, answer.reason, answer.url
            head.raw = BytesIO()
        if HTTPStatus.MULTIPLE_CHOICES <= head.status_code < HTTPStatus.BAD_REQUEST:
            raise requests.TooManyRedirects(f"status {head.status_code}: redirects are not followed")
        return head
