// The engine's own descriptors: opened beside the MPI library's, and closed only when that cannot hurt. POSIX drops a process's
// fcntl locks on a file when any of its descriptors of that file is closed; so one is parked while the program has the file open.
// What does not live here: which files get one (open.cpp).
#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include "storage/backend.hpp"

namespace ioweir::engine {

/// Which file it is, whatever its name.
struct FileIdentity {
    std::uint64_t device = 0;
    std::uint64_t inode = 0;
    friend bool operator==(const FileIdentity&, const FileIdentity&) = default;
};

struct Descriptor {
    int number = -1;
    bool readable = false;
    bool writable = false;
    FileIdentity identity;
};

class Descriptors {
public:
    using ProgramHasOpen = bool (*)(std::uint64_t device, std::uint64_t inode);

    Descriptors(storage::Backend& backend, ProgramHasOpen program_has_open)
        : backend_(backend), program_has_open_(program_has_open) {}

    struct Opened {
        Descriptor descriptor;
        int error = 0;
    };
    /// The file must exist. A parked descriptor of the same file and abilities is taken again.
    [[nodiscard]] Opened open(const std::string& path, bool readable, bool writable);

    /// Closes the descriptor, or parks it; then tries again with those parked before.
    void release(const Descriptor& descriptor);

    /// Does the number still refer to the file? A program may close every descriptor it finds.
    [[nodiscard]] static bool is_intact(const Descriptor& descriptor);

    [[nodiscard]] std::size_t parked() const;

private:
    [[nodiscard]] bool may_close(const FileIdentity& identity) const {
        return program_has_open_ == nullptr || !program_has_open_(identity.device, identity.inode);
    }
    bool unpark(const FileIdentity& identity, bool readable, bool writable, Descriptor& found);

    storage::Backend& backend_;
    ProgramHasOpen program_has_open_;
    mutable std::mutex lock_;
    std::vector<Descriptor> parked_;
};

}  // namespace ioweir::engine
