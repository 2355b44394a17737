"""Forms of test vectors, which ``run_vectors`` runs.

Two forms of file are understood: those of ``spec/vectors`` (``forms``, ``extension_forms``; described in
``spec/vectors/README.md``, so that another implementation can run them too), and the collection that was gathered from
the reference implementation (``reference_form``).
"""
