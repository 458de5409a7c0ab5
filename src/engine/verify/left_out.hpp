// LeftOut: writes of one handle that verification knows of and cannot compare, with the reason: those that the MPI library carried out,
// and those that the program was told have failed before anybody knew which bytes they were about.
// What does not live here: bytes that the engine wrote, or failed to (write_log.hpp); saying it (verify.cpp).
#pragma once

#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "ioweir_generated/records.hpp"

namespace ioweir::engine {

/// Thread safe. Used with --verify only.
class LeftOut {
public:
    struct Entry {
        format::VerifyOutcome outcome;
        std::string reason;
        std::int64_t calls = 0;
        std::int64_t bytes = 0;
        std::int64_t offset = -1;  ///< where in the file the first of them goes; -1: unknown
    };
    /// A call of `bytes` bytes, which are left out only if there are any.
    void add(format::VerifyOutcome outcome, std::string_view reason, std::int64_t bytes, std::int64_t offset);
    /// A call for which there was no memory, not even to say so: what became of its bytes is not known.
    void add_without_memory(std::int64_t bytes);
    [[nodiscard]] std::vector<Entry> take();

private:
    std::mutex lock_;
    std::vector<Entry> entries_;
    std::int64_t lost_calls_ = 0, lost_bytes_ = 0;
};

}  // namespace ioweir::engine
