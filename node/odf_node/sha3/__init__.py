"""SHA3-256 of several messages at once, for those who receive many files.

``hashing`` is what others use. Under it: ``keccak`` writes the program, ``compiled`` makes it run on this machine,
``lanes`` brings the threads together that hash at the same time, ``lane_hash`` is a hash in the manner of ``hashlib``.
"""
