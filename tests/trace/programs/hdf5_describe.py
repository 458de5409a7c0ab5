"""What an HDF5 file is like, as JSON: its superblock, how its space is managed, and each dataset's layout."""

from __future__ import annotations

import json
import sys
from typing import Any

import h5py

with h5py.File(sys.argv[1], "r") as file:
    created = file.id.get_create_plist()
    sets: dict[str, dict[str, Any]] = {}

    def visit(name: str, item: object) -> None:
        if not isinstance(item, h5py.Dataset):
            return
        listed = item.id.get_create_plist()
        sets[name] = {
            "chunks": item.chunks,
            "offset": item.id.get_offset() if item.chunks is None else None,
            "fill_time": listed.get_fill_time(),
            "shape": item.shape,
        }
        if item.chunks is not None and item.id.get_num_chunks() and item.compression is None:
            sets[name]["offset"] = [item.id.get_chunk_info(i).byte_offset for i in range(item.id.get_num_chunks())]

    file.visititems(visit)
    superblock = created.get_version()[0]
    print(
        json.dumps(
            {
                "superblock": superblock,
                "user_block": created.get_userblock(),
                "page": created.get_file_space_page_size(),
                "strategy": created.get_file_space_strategy()[0],
                "sets": sets,
            }
        )
    )
