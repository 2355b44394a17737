"""The rows and columns in which another node's slice differs from a file, found by a few hashes: ``odf-node locate``.

Source: clause LOCATE-1 in ``spec/plug-ins/locate.md``.
"""
