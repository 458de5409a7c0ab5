// A container of subfiles (subfiles.hpp): where a byte lies is arithmetic, so that there is no index, and what is written is there at once
// for all, as in one file.
#pragma once

#include <memory>
#include <mutex>
#include <set>
#include <string>

#include "container/container.hpp"
#include "container/data_files.hpp"
#include "container/subfiles.hpp"

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
    [[nodiscard]] std::int64_t length() override;
    int set_length(std::int64_t bytes) override;
    [[nodiscard]] std::string problem() const override;

    std::int64_t attempt_write(int descriptor, const iovec* pieces, int count, std::int64_t offset) override;
    std::int64_t attempt_read(int descriptor, const iovec* pieces, int count, std::int64_t offset) override;
    int attempt_flush(int descriptor, std::int64_t bytes, std::int64_t offset) override;

private:
    StripedContainer(storage::Backend& below, Clock& clock, Directory directory, Subfiles subfiles);
    struct Got {
        std::shared_ptr<DataFile> file;
        int error = 0;
    };
    /// Opened, and seen to be the one that it should be.
    [[nodiscard]] Got subfile(std::int64_t number);

    const Subfiles subfiles_;
    mutable std::mutex lock_;  ///< for everything below; not held while data are moved
    int writers_ = 0;          ///< handles
    std::unique_ptr<DataFiles> files_;
    std::set<std::int64_t> dirty_;  ///< numbers of those that were written since the last durable flush
    std::string problem_;
};

}  // namespace ioweir::container
