// Rank 0's part of opening a file whose bytes lie in several: finds its container, or makes one where the strategy asks for it, and what
// the other ranks are told of it.
// What does not live here: what every rank does with it (mapped.cpp), the container itself (src/container).
#pragma once

#include <array>
#include <cstdint>
#include <memory>

#include "container/sharing/generations.hpp"
#include "container/sharing/locks.hpp"
#include "engine/files/mapped.hpp"
#include "engine/files/probing.hpp"

namespace ioweir::engine {

/// What rank 0 tells the others.
struct OpenBroadcast {
    std::int64_t kind = 0;  ///< Found::Kind, `changed`, or an MPI error class, negative
    std::int64_t shape_kind = 0;
    std::int64_t count = 0;
    std::int64_t stripe_bytes = 0;
    std::int64_t version = container::newest_version;
    std::int64_t owner = -1;  ///< of the header file, where it was there
    std::int64_t generation = 0;
    std::int64_t stamp = 0;       ///< the largest that is there
    std::int64_t after_dead = 0;  ///< an unfinished generation before this one has died
    std::int64_t open = 0;        ///< a number that no other open of the container has
    std::int64_t only_name = 0;   ///< to delete the file at the path of the open is to delete the header file
    std::array<char, 32> id{};

    static constexpr std::int64_t changed = 3;  ///< the header file is not there any more
};

void put(OpenBroadcast& told, const container::HeaderFile& header_file);
[[nodiscard]] container::HeaderFile header_file_of(const OpenBroadcast& told);

/// Why a file that asks for several is shared; empty: it is not.
[[nodiscard]] std::string why_shared(const Handle& handle, const policy::FileRule* rule);

/// What rank 0 holds.
struct Held {
    container::DirectoryHold directory;
    std::shared_ptr<const container::GenerationLock> generation;  ///< null: none was begun
};

/// Rank 0's part of attach_container(): the container that is there, or a new one, or why the file is shared; where it is written, with
/// a generation of its own. `placing`: where subfiles go, if anybody has asked for targets (asks_for_targets()).
/// What is there when it returns stays for all ranks, as long as rank 0 has `held`.
[[nodiscard]] OpenBroadcast prepare(Engine& engine, Handle& handle, const Found& found, const policy::FileRule* rule,
                                    const Placing& placing, Held& held);

}  // namespace ioweir::engine
