// A container with an index (index.hpp): groups with a file each, and logs.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "container/container.hpp"
#include "container/data_files.hpp"
#include "container/index/index.hpp"
#include "container/index/map.hpp"
#include "container/index/own_index.hpp"
#include "container/index/runs.hpp"
#include "container/log_ahead.hpp"

namespace ioweir::container {

class IndexedContainer final : public Container {
public:
    [[nodiscard]] static Result<std::unique_ptr<Container>> open(storage::Backend& below, Clock& clock,
                                                                 Directory directory, Role role);

    [[nodiscard]] std::optional<Error> join(const Role& role) override;
    int leave(const Role& role, Left* left) override;
    int flush(bool durable) override;
    int show() override;
    void begin_batch() override;
    void begin_call() override;
    void adopt(Stamp known) override;
    int look_around() override;
    void add_watcher(IndexWatcher& watcher) override;
    void remove_watcher(IndexWatcher& watcher) override;
    [[nodiscard]] std::int64_t length() override;
    int set_length(std::int64_t bytes) override;
    void find_again() override;
    [[nodiscard]] std::string problem() const override;
    // indexed_log.cpp:
    void watch_work() override;
    [[nodiscard]] std::vector<Work> take_work() override;
    [[nodiscard]] std::string log_place() const override;
    [[nodiscard]] std::optional<Error> go_on_in(const std::string& place) override;

    std::int64_t attempt_write(int descriptor, const iovec* pieces, int count, std::int64_t offset) override;
    [[nodiscard]] bool takes_scattered() const override { return directory_.is_log(); }
    std::int64_t attempt_write_scattered(int descriptor, const iovec* pieces, int count, const layout::Extent* parts,
                                         std::int64_t part_count) override;
    std::int64_t attempt_read(int descriptor, const iovec* pieces, int count, std::int64_t offset) override;
    int attempt_flush(int descriptor, std::int64_t bytes, std::int64_t offset) override;

private:
    IndexedContainer(storage::Backend& below, Clock& clock, Directory directory);

    /// A handle that writes.
    struct Writer {
        std::uint32_t generation = 0;
        std::uint32_t rank = 0;
        friend bool operator==(const Writer&, const Writer&) = default;
    };

    /// Of the index, with a stamp from when it was begun.
    struct Sealed {
        Stamp stamp = 0;
        std::vector<Run> entries;
    };

    // With lock_ held:
    int flush_now(bool durable);
    /// What is written from now on gets a stamp of its own.
    void seal();
    [[nodiscard]] std::optional<Error> open_own(const Role& role);
    /// Before a byte is believed: what is wrong with the groups' files, one for all ranks.
    [[nodiscard]] std::optional<Error> check_groups(const Role& role) const;
    void record(layout::Extent written, std::int64_t place);
    void forget_own();
    /// A write that may wait, of parts one behind the other in memory: bytes, or a negative errno value.
    std::int64_t keep_waiting(const iovec* pieces, int count, const layout::Extent* parts, std::int64_t bytes);
    /// What waits goes into its file. An errno value; then it waits still.
    int write_waiting();
    void lay_unread_over();
    /// Memory for what is not in the index is bounded: joins it, and if that does not help, appends it. An errno value.
    int make_room();
    int load();
    /// This process's bytes are on storage, as far as they are written, also those in logs that it has left. An errno value.
    int sync_data();
    /// The part of the logical file from `offset` on that lies together, in a file or in none (`source` -1).
    [[nodiscard]] Segment locate(std::int64_t offset) const;
    /// Of memory, in runs or what takes as much.
    [[nodiscard]] std::size_t waiting() const { return sealed_runs_ + sealed_.size() + fresh_.size(); }
    /// What comes from now on is later than what handles of other opens have put into their indexes. An errno value.
    int adopt_others();
    /// Everything that waits; an errno value, and then it waits still.
    int append_all(bool durable);
    int append(const std::vector<Sealed>& batches, bool durable);
    [[nodiscard]] std::int64_t length_now();
    /// The indexes have stamps up to this one.
    void learn(Stamp last);

    mutable std::mutex lock_;  ///< for everything below; not held while data are moved
    bool reads_ = false;
    bool tracks_ = false;             ///< as Role::after_dead
    std::vector<Writer> writers_;     ///< the index goes by the first one's name
    std::int64_t own_source_ = -1;    ///< the file of this process's bytes
    std::shared_ptr<DataFile> data_;  ///< it; null: this process does not write
    std::int64_t log_end_ = 0;        ///< log: of this process's file
    bool on_target_ = false;          ///< log: it does not lie in the container's directory
    std::string place_;               ///< ... but there
    std::int64_t sent_end_ = 0;       ///< ... and what is on its way to storage
    const Identity identity_;
    /// Where somebody watches how fast its target is, which writes from one thread then: a writer gets only so far ahead of the target.
    bool watches_ = false;
    storage::Flushes flushes_;
    Work work_;
    std::vector<std::shared_ptr<DataFile>> left_logs_;  ///< that it went on from, since the last durable flush
    // Small writes to a log that may wait for the next flush: what has been written to it and is not in its file. They are no more in the index,
    // so that nobody else misses them.
    bool waits_ = false;
    std::vector<std::byte> waiting_bytes_;
    std::int64_t waiting_place_ = 0;  ///< of the first, in the log
    OwnIndex index_;
    std::string index_name_;  ///< in the container's folder
    std::string encoded_;     ///< what goes to it next; kept for its memory
    // Written and not in the index, in order:
    std::vector<Sealed> sealed_;
    std::size_t sealed_runs_ = 0;
    RunBuilder fresh_;
    Stamp fresh_stamp_ = 0;  ///< of fresh_, if there is any
    static constexpr std::int64_t no_batch = INT64_MIN;
    std::atomic<std::int64_t> fresh_since_{no_batch};  ///< by the time of day; read without lock_, too
    std::atomic<std::int64_t> longest_ns_;             ///< that one batch goes on; the same
    std::uint32_t timed_out_ = 0;                      ///< batches that have gone on as long
    std::size_t room_;                                 ///< how many runs there may be before make_room()
    std::int64_t fresh_end_ = 0;                       ///< of the furthest
    std::map<std::int64_t, Segment>
        own_;  ///< for reading: all that was written and is not in the index, or was shown; hides what is known
    RunBuilder unread_;  ///< written since this process last read; later than own_, where it goes at the next read
    std::size_t unread_pieces_ = 0;
    bool shown_ = false;  ///< own_ has what is in the index, too: later than what is known
    bool loaded_ = false;
    LogicalMap known_;  ///< as the indexes had it when last loaded
    DataFiles files_;
    LogAhead ahead_;  ///< logs only
    std::vector<IndexWatcher*> watchers_;
    std::string problem_;
};

}  // namespace ioweir::container
