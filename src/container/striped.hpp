// A container of subfiles (subfiles.hpp): where a byte lies is arithmetic, so that there is no index, and what is written is there at once
// for all, as in one file. Only where stripes go that nobody has written may change (redivide()).
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "container/container.hpp"
#include "container/data_files.hpp"
#include "container/files/subfiles.hpp"
#include "container/index/runs.hpp"

namespace ioweir::container {

class StripedContainer final : public Container {
public:
    [[nodiscard]] static Result<std::unique_ptr<Container>> open(storage::Backend& below, Clock& clock,
                                                                 Directory directory, Role role);

    [[nodiscard]] std::optional<Error> join(const Role& role) override;
    int leave(const Role& role, Left* left) override;
    int flush(bool durable) override;
    void adopt(Stamp known) override { clock_.adopt(known); }
    int look_around() override { return 0; }
    void watch_work() override { watches_ = true; }
    [[nodiscard]] std::vector<Work> take_work() override;
    [[nodiscard]] std::optional<Error> redivide(const std::vector<std::int64_t>& files) override;
    int reload(std::optional<std::int64_t> first = std::nullopt) override;
    [[nodiscard]] InUse in_use() const override;
    void find_again() override;
    [[nodiscard]] std::int64_t length() override;
    int set_length(std::int64_t bytes) override;
    [[nodiscard]] std::string problem() const override;

    std::int64_t attempt_write(int descriptor, const iovec* pieces, int count, std::int64_t offset) override;
    std::int64_t attempt_read(int descriptor, const iovec* pieces, int count, std::int64_t offset) override;
    int attempt_flush(int descriptor, std::int64_t bytes, std::int64_t offset) override;
    void begin_flush(int descriptor, std::int64_t bytes, std::int64_t offset) override;

private:
    StripedContainer(storage::Backend& below, Clock& clock, Directory directory, Subfiles subfiles);
    struct Got {
        std::shared_ptr<DataFile> file;
        int error = 0;
    };
    /// Opened, and seen to be the one that it should be.
    [[nodiscard]] Got subfile(std::int64_t number);

    [[nodiscard]] std::shared_ptr<const Subfiles> now() const;
    [[nodiscard]] Work& work_of(std::int64_t number);  ///< with lock_ held
    void add_work(std::int64_t number, std::int64_t bytes, std::int64_t ns);
    void track(layout::Extent written);
    /// With lock_ held. Where it cannot be written nothing is lost: what this process has written over is not known then.
    void leave_written(const Role& role);
    void send_on(const DataFile& file, const Spot& spot, std::int64_t moved);

    std::atomic<bool> watches_{false};
    const bool on_targets_;    ///< the subfiles do not lie beside each other in the container's own directory
    mutable std::mutex lock_;  ///< for everything below; not held while data are moved
    std::shared_ptr<const Subfiles> subfiles_;
    std::uint64_t mark_ = 0;  ///< of the file that says so
    bool stale_ = false;      ///< it says something else by now
    std::int64_t due_ = 0;    ///< the first subfile in use must have that number at least
    std::vector<Work> work_;
    std::map<std::int64_t, storage::Flushes> on_their_way_;  ///< by subfile
    std::size_t flushes_ = 0;
    int writers_ = 0;                  ///< handles
    std::atomic<bool> tracks_{false};  ///< as Role::after_dead
    RunBuilder written_;               ///< since then, if it is so; also what was cut
    std::int64_t cut_ = -1;            ///< the least length that the file was given since then; -1: none
    bool lost_track_ = false;          ///< it was too much to remember
    std::unique_ptr<DataFiles> files_;
    std::set<std::int64_t> dirty_;  ///< numbers of those that were written since the last durable flush
    std::string problem_;
};

}  // namespace ioweir::container
