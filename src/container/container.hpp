// Container: a logical file whose bytes lie in several, as one rank of a job sees it. To the engine it is a storage backend: offsets
// are those of the logical file, and descriptors have no meaning.
//
// Promises:
// - What this process has written through it, it reads. What others have written, from its own flush() after theirs on.
// - A process that dies leaves what was flushed.
// What does not live here: which ranks are a group, and when all ranks have flushed (engine), the files' names (directory.hpp).
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "container/directory.hpp"
#include "storage/backend.hpp"

namespace ioweir::container {

/// What a process does with a container.
struct Role {
    bool reads = false;
    bool writes = false;
    std::int32_t group = 0;        ///< whose file its bytes go to
    std::uint32_t rank = 0;        ///< among those who opened it together
    std::uint32_t generation = 0;  ///< of theirs, if they write
};

class Container final : public storage::Backend {
public:
    /// `below` must outlive it: it moves the bytes of the container's files.
    [[nodiscard]] static Result<std::unique_ptr<Container>> open(storage::Backend& below, Directory directory,
                                                                 Role role);
    ~Container() override;

    /// Puts what has been written so far into the index, for good if `durable`. Begins a new epoch; the next read looks at all indexes
    /// anew. An errno value.
    int flush(bool durable);
    /// Of the logical file now, whoever wrote it. -1: cannot be told.
    [[nodiscard]] std::int64_t length() const;
    /// The file is that long from now on, after all have flushed: one rank `records` it, for the others it begins a new epoch only.
    /// An errno value.
    int set_length(std::int64_t bytes, bool records);
    [[nodiscard]] const Directory& directory() const { return directory_; }
    [[nodiscard]] std::uint32_t generation() const { return role_.generation; }
    /// Why a read failed with EIO, if the index was the reason.
    [[nodiscard]] std::string problem() const;

    // As a backend.
    [[nodiscard]] storage::Opened attempt_open(const char* path, int flags, mode_t mode) override;
    int attempt_close(int descriptor) override;
    std::int64_t attempt_write(int descriptor, const iovec* pieces, int count, std::int64_t offset) override;
    std::int64_t attempt_read(int descriptor, const iovec* pieces, int count, std::int64_t offset) override;
    int attempt_flush(int descriptor, std::int64_t bytes, std::int64_t offset) override;
    int attempt_allocate(int descriptor, int mode, std::int64_t offset, std::int64_t bytes) override;

private:
    Container(storage::Backend& below, Directory directory, Role role);
    void record(layout::Extent written);
    /// Memory for what is not in the index is bounded: sorts it, and if that does not help, appends it. An errno value.
    int make_room();
    int load();
    /// The part of the logical file from `offset` on that lies together, in a file or in none (`source` -1).
    Segment locate(std::int64_t offset) const;
    /// A descriptor or a negative errno value.
    int data_of(std::int32_t group);
    int append(const Batch& batch, bool durable);
    [[nodiscard]] Time now() const { return {role_.generation, epoch_, role_.rank}; }

    storage::Backend& below_;
    const Directory directory_;
    const Role role_;
    mutable std::mutex lock_;  ///< for everything below; not held while data are moved
    std::vector<int> data_;    ///< a descriptor a group, -1: not yet open
    int index_ = -1;
    std::int64_t index_bytes_ = 0;
    std::uint32_t epoch_ = 0;
    std::vector<Segment> fresh_;  ///< written and not in the index, in order
    std::size_t room_;            ///< how many of them there may be before make_room()
    std::map<std::int64_t, Segment>
        own_;  ///< for reading: all that was written since the last flush; hides what is known
    bool loaded_ = false;
    Segments known_;  ///< as the indexes had it when last loaded
    std::string problem_;
};

}  // namespace ioweir::container
