"""Print the JSON schema of the configuration: ``python -m odf_node.configuration``."""

import json
import sys

from odf_node.configuration.json_schema import make_json_schema

sys.stdout.write(json.dumps(make_json_schema(), indent=2) + "\n")
