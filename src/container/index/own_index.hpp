// OwnIndex: the index file that this process appends its batches to.
//
// Where only this machine's kernel can have the file system mounted and what was written keeps its room (ext4, tmpfs), and batches come one by one, the file's end
// is mapped: a batch is then stored in memory that the file's readers see, and costs no system call. The file is made longer for that, with
// zeros that are written, so that a full disk is an error there and not a signal; close() cuts them off. Elsewhere, and where that fails,
// each batch is written.
//
// The first word of what is appended comes last: a process that is killed in between leaves zeros there, and readers see that nothing
// follows, or that the last batch is torn.
// What does not live here: when something is appended (indexed.hpp), the batches' form (index.hpp), reading them (directory.hpp).
#pragma once

#include <sys/stat.h>

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/guarded_files.hpp"
#include "storage/backend.hpp"

namespace ioweir::container {

/// Not thread safe.
class OwnIndex {
public:
    explicit OwnIndex(storage::Backend& below) : below_(below) {}
    ~OwnIndex();
    OwnIndex(const OwnIndex&) = delete;
    OwnIndex& operator=(const OwnIndex&) = delete;

    [[nodiscard]] bool is_open() const { return descriptor_ >= 0; }
    /// A new file, without a byte.
    void begin(guarded::File file);
    /// One fstat(2).
    [[nodiscard]] bool is_intact() const { return guarded::stands_for(descriptor_, status_); }
    /// The program has closed the descriptor; `found` has the file's name now. If that is another file, or none, appending fails with EBADF.
    void go_on_with(guarded::File found);
    /// Whole batches, so a multiple of 8. An errno value: then none of them is there, and a later attempt takes their place.
    int append(std::string_view batches, bool durable);
    /// Of all batches.
    [[nodiscard]] std::int64_t bytes() const { return bytes_; }
    /// Nothing is appended any more.
    void close();

    /// Appended one by one before it is worth while to map the file.
    static constexpr int appends_before_mapping = 16;
    static constexpr std::int64_t first_window_bytes = 64 << 10, most_window_bytes = 1 << 20;

private:
    [[nodiscard]] bool move_window(std::int64_t wanted);
    void drop_window();
    void cut();
    int write(std::string_view batches);

    storage::Backend& below_;
    int descriptor_ = -1;
    struct stat status_{};  ///< of the file
    int owner_ = 0;         ///< the process that began it; a child of it may not cut it
    std::int64_t bytes_ = 0;
    int appends_ = 0;
    bool may_map_ = true;
    bool lost_ = false;    ///< the descriptor's number is somebody else's
    bool longer_ = false;  ///< the file may have zeros behind its batches
    std::byte* mapped_ = nullptr;
    std::int64_t window_begin_ = 0, window_end_ = 0;  ///< in the file
    std::int64_t window_bytes_ = first_window_bytes;  ///< of the next one
};

}  // namespace ioweir::container
