"""The program that asks an MQTT broker: run as a process of its own, of bounded memory.

A broker may send messages of 256 MiB. ``sources.mqtt`` starts it; see ``sources.reader_process``. Messages go into a
file of the node's home, and are acknowledged once they are on disk. It imports nothing else of the node.

Source: clause ING-33 in ``spec/ingest.md``.
"""
