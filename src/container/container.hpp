// Container: a logical file whose bytes lie in several, as one process sees it through all of its handles. To the engine it is a storage
// backend: offsets are those of the logical file, and descriptors have no meaning.
//
// Promises:
// - What this process has written through it, it reads, in the order of its calls. What others have written, from its own flush()
//   after theirs on.
// - Of two processes' writes to a byte the one holds that was made later, where the later process was told of the earlier one's stamps
//   before it (adopt(), look_around()), or began anew since the earlier one was made (begin_batch()); of others that which was begun
//   later by the time of day, as closely as batches of an index are apart.
// - A process that dies leaves what was flushed.
// How: by an index (indexed.hpp), or by arithmetic (striped.hpp), where writes are seen at once and last as in one file.
// What does not live here: which ranks are a group, and when all ranks have flushed (engine), the files' names (directory.hpp).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "container/files/directory.hpp"
#include "container/index/clock.hpp"
#include "container/sharing/generations.hpp"
#include "container/sharing/locks.hpp"
#include "storage/backend.hpp"
#include "storage/pacing.hpp"

namespace ioweir::container {

/// Hears what others may have to be told of one process's container. Called with the container's lock held: must not call it.
class IndexWatcher {
public:
    virtual ~IndexWatcher() = default;
    IndexWatcher() = default;
    IndexWatcher(const IndexWatcher&) = delete;
    IndexWatcher& operator=(const IndexWatcher&) = delete;
    /// Something has been written that is in no index, and nobody else can read.
    virtual void written() = 0;
    /// All of it is in the index now.
    virtual void indexed() = 0;
    /// There are stamps up to this one in indexes.
    virtual void learned(Stamp last) = 0;
};

/// What a process does with a container through one handle.
struct Role {
    bool reads = false;
    bool writes = false;
    std::int32_t group = 0;  ///< grouped: whose file its bytes go to, if it is the first of the process that writes
    std::uint32_t rank = 0;  ///< among those who opened it together
    std::uint32_t generation = 0;  ///< of theirs, if they write
    std::string place = {};        ///< log: a directory for the bytes that it writes; empty: the container's own
    bool after_dead =
        false;  ///< an unfinished one before it has died: what this one writes over is to be known (replaced.hpp)
    bool waits = false;  ///< log: small writes may wait in memory until flush(), which tells of their errors
};

class Container : public storage::Backend {
public:
    /// `below` and `clock` must outlive it: the one moves the bytes of the container's files, the other is the process's.
    [[nodiscard]] static Result<std::unique_ptr<Container>> open(storage::Backend& below, Clock& clock,
                                                                 Directory directory, Role role);

    /// Another handle of this process. Nothing, or why not.
    [[nodiscard]] virtual std::optional<Error> join(const Role& role) = 0;
    /// A handle is about to be closed: flushes; nothing is put into the index under its generation any more. An errno value; `left`, where
    /// there is an index, is what this process leaves of its generation's.
    virtual int leave(const Role& role, Left* left) = 0;
    int leave(const Role& role) { return leave(role, nullptr); }

    /// Puts what has been written so far, through whichever handle, into its file and the index, for good if `durable`. The next read looks at all
    /// indexes anew. An errno value.
    virtual int flush(bool durable) = 0;
    /// The same for others alone, not durable: what this process knows of what others have written stays as it is.
    virtual int show() { return flush(false); }
    /// This process has waited for others, or may have: what it writes from now on comes after what they wrote before, and before what
    /// they write after their own next call of it. Costs nothing until something is written.
    virtual void begin_batch() {}
    /// A call begins that says nothing of others: a batch that has gone on for some time ends.
    virtual void begin_call() {}
    /// Others have stamps up to this one: what is written from now on comes later. The next read looks at all indexes anew.
    virtual void adopt(Stamp known) = 0;
    /// The same, by asking the directory for what jobs and handles have left of whose stamps nobody tells us. An errno value.
    virtual int look_around() = 0;

    /// From now on until it is removed, whichever handle writes. Where there is no index nothing is to be heard.
    virtual void add_watcher(IndexWatcher& watcher);
    virtual void remove_watcher(IndexWatcher& watcher);

    /// The program has closed descriptors that it did not open, and its own files may have their numbers: those of the container's files are
    /// opened anew. What is not there any more fails with EBADF.
    virtual void find_again() = 0;

    /// Of the logical file now, as far as this process can know. -1: cannot be told.
    [[nodiscard]] virtual std::int64_t length() = 0;
    /// The file is that long from now on, after all have flushed: one rank records it, and the others adopt its stamp afterwards. An errno
    /// value.
    virtual int set_length(std::int64_t bytes) = 0;
    /// What this process has written to each subfile since it was last asked, or to its log on a target (one entry); nothing before
    /// watch_work() or where there are none.
    struct Work {
        std::int64_t bytes = 0;
        std::int64_t ns = 0;  ///< in writes, and until what waited was on the storage
    };
    virtual void watch_work() {}
    [[nodiscard]] virtual std::vector<Work> take_work() { return {}; }
    /// One rank, with the header file locked: stripes that nobody has written go to those of these subfiles' targets (numbers as in take_work())
    /// from now on. All ranks reload() before they write again. An Error: nothing has changed.
    [[nodiscard]] virtual std::optional<Error> redivide(const std::vector<std::int64_t>& files);
    /// Looks again where bytes go; `first` (InUse): as it has to be now, where that is known. An errno value; nothing is written then until a
    /// look succeeds.
    virtual int reload(std::optional<std::int64_t> first = std::nullopt);
    /// Subfiles that stripes which nobody has written would go to: a first number, and how many.
    struct InUse {
        std::int64_t first = 0, count = 0;
    };
    [[nodiscard]] virtual InUse in_use() const { return {}; }

    /// The directory on a target where the log of this process lies, as it was given; empty: there is none.
    [[nodiscard]] virtual std::string log_place() const { return {}; }
    /// What this process writes from now on goes to a new log in that directory; no write may be under way. An Error: it goes on where it
    /// is.
    [[nodiscard]] virtual std::optional<Error> go_on_in(const std::string& place);

    /// Why a read failed with EIO, if the container was the reason.
    [[nodiscard]] virtual std::string problem() const = 0;
    [[nodiscard]] const Directory& directory() const { return directory_; }
    [[nodiscard]] Stamp last_stamp() const { return clock_.last(); }

    // As a backend, what no container does.
    [[nodiscard]] storage::Opened attempt_open(const char* path, int flags, mode_t mode) final;
    int attempt_close(int descriptor) final;
    int attempt_allocate(int descriptor, int mode, std::int64_t offset, std::int64_t bytes) final;

protected:
    Container(storage::Backend& below, Clock& clock, Directory directory)
        : below_(below), clock_(clock), directory_(std::move(directory)), hold_(directory_) {}

    storage::Backend& below_;
    Clock& clock_;
    const Directory directory_;

private:
    const DirectoryHold
        hold_;  ///< its files stay where they are, also when its header file is made an ordinary file or removed
};

}  // namespace ioweir::container
