"""FlatBuffers form of metadata blocks: one encoder and one decoder, both driven by the declarations of ``events``.

``encoder`` lays bytes down exactly as the reference implementation does, because their hash is the block's identity.
``decoder`` reads bytes of strangers: it checks every offset before following it. ``envelope`` makes whole blocks.

Source: ODF metadata block serialization; clauses WIRE-1 to WIRE-14 of ``spec/odf-profile.md``.
"""
