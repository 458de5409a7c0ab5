// What a set that is being written can do, whoever touches the storage.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "partition/agreement.hpp"
#include "partition/core/block_header.hpp"

namespace ioweir::partition {

struct WriteFigures {
    std::int64_t useful_bytes = 0, padded_bytes = 0, write_ns = 0, calls = 0;
};

/// Adds the time that it lives to a figure.
class Timed {
public:
    explicit Timed(std::int64_t& ns) : ns_(ns) {}
    ~Timed() { ns_ += std::chrono::nanoseconds(std::chrono::steady_clock::now() - begin_).count(); }
    Timed(const Timed&) = delete;
    Timed& operator=(const Timed&) = delete;

private:
    std::int64_t& ns_;
    std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

class SetWriter {
public:
    SetWriter() = default;
    SetWriter(const SetWriter&) = delete;
    SetWriter& operator=(const SetWriter&) = delete;
    virtual ~SetWriter() = default;

    /// `header`: of this rank's block, of part `part` (from 0, of this rank); part -1: it has none. `mine`: what is wrong with this rank's arguments; it then takes
    /// part without a block where the call is collective. A failure of this rank's alone, or one that it was not told of before.
    [[nodiscard]] virtual std::optional<Failure> write(std::int64_t field, std::int64_t part, const BlockHeader& header,
                                                       const void* items, std::optional<Failure> mine) = 0;
    [[nodiscard]] virtual std::optional<Failure> close() = 0;
    virtual void abandon() = 0;

    [[nodiscard]] virtual const WriteFigures& figures() const = 0;
    [[nodiscard]] virtual const std::vector<std::string>& fields() const = 0;
    [[nodiscard]] virtual std::int64_t step() const = 0;
    [[nodiscard]] virtual std::int64_t files() const = 0;
    /// Of this rank, and of all.
    [[nodiscard]] virtual std::int64_t parts() const = 0;
    [[nodiscard]] virtual std::int64_t all_parts() const = 0;
    /// From 1, among all parts.
    [[nodiscard]] virtual std::int64_t global_part(std::int64_t part) const = 0;

    [[nodiscard]] bool is_written(std::int64_t field, std::int64_t part) const {
        return given_[static_cast<std::size_t>(field)][static_cast<std::size_t>(part)];
    }

protected:
    void begin_blocks() { given_.assign(fields().size(), std::vector<bool>(static_cast<std::size_t>(parts()), false)); }
    void note_written(std::int64_t field, std::int64_t part) {
        given_[static_cast<std::size_t>(field)][static_cast<std::size_t>(part)] = true;
    }
    /// The first block of this rank that is missing.
    [[nodiscard]] std::optional<Failure> why_incomplete() const {
        for (std::int64_t field = 0; field < std::ssize(given_); ++field) {
            for (std::int64_t part = 0; part < parts(); ++part) {
                if (!is_written(field, part))
                    return argument(
                        "a field that was not written for every part",
                        fields()[static_cast<std::size_t>(field)] + ", part " + std::to_string(global_part(part)),
                        "write each field of each part before the set is closed");
            }
        }
        return std::nullopt;
    }

private:
    std::vector<std::vector<bool>> given_;  ///< [field][own part]
};

}  // namespace ioweir::partition
