"""Further sources of root datasets: databases, servers, brokers, buckets, programs; found by entry points.

Each kind is one module, with what a fetch step of it may say, and how it is fetched. Kinds whose clients believe what a
server says are asked by a program of ``readers``, in a process of its own.

Source: chapter ``spec/plug-ins/sources.md``.
"""
