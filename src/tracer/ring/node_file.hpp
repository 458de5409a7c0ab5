// The trace file of one node, shared by its processes: hands out chunks. No process keeps a descriptor of it open, since
// programs close descriptors they do not know.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>

#include "ioweir_generated/records.hpp"

namespace ioweir::tracer {

class NodeFile {
public:
    static constexpr std::size_t path_capacity = 4096;

    /// Creates or joins `directory`/node-<host>.iowt: a file of this user's own, at the end of no link. 0, or errno with `failed_step` set.
    int attach(const char* directory, bool use_tsc);
    [[nodiscard]] bool attached() const { return header() != nullptr; }
    /// Threads ask without a lock whether another one has attached: what the header points at is then seen whole.
    [[nodiscard]] format::FileHeader* header() const { return __atomic_load_n(&header_, __ATOMIC_ACQUIRE); }
    [[nodiscard]] const char* path() const { return path_; }
    [[nodiscard]] const char* failed_step() const { return failed_step_; }

    struct Chunk {
        format::ChunkHeader* header = nullptr;  ///< mapped, space allocated on disk; null when it failed
        int error = 0;                          ///< errno then
    };
    /// A new zeroed chunk, `size_bytes` a multiple of format::chunk_alignment. The caller fills the header, magic last.
    /// EDQUOT when the file would become larger than `quota_bytes`.
    Chunk allocate(std::size_t size_bytes, std::uint64_t quota_bytes);
    /// Gives back the disk space of the last `tail_bytes` of a mapped chunk, and unmaps them; whole pages. Its header still
    /// says how long it is: the rest of it reads as zeros. False, and nothing has happened, where the file system cannot.
    bool give_back(format::ChunkHeader* chunk, std::size_t tail_bytes);
    static void release(format::ChunkHeader* chunk, std::size_t size_bytes);

private:
    int map_header();
    /// A descriptor of the file that was attached; -1 and errno: it is gone, or (ESTALE) another one has its name.
    [[nodiscard]] int reopen() const;
    Chunk allocate_at(void* place, std::size_t size_bytes, std::uint64_t quota_bytes);

    format::FileHeader* header_ = nullptr;
    dev_t device_ = 0;
    ino_t inode_ = 0;
    bool use_tsc_ = false;
    const char* failed_step_ = "";
    char path_[path_capacity] = {};
    char host_[64] = {};
};

}  // namespace ioweir::tracer
