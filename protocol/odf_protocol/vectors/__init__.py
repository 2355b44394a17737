"""Test vectors as a program: ``python -m odf_protocol.vectors FILE...`` runs them and says how many passed.

Two forms of file are understood: those of ``spec/vectors`` (``forms``, ``extension_forms``; described in
``spec/vectors/README.md``, so that another implementation can run them too), and the collection that was gathered from
the reference implementation (``reference_form``).

This package reads files and prints; nothing else of ``odf_protocol`` does.
"""
