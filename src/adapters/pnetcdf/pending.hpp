// Non-blocking accesses that are begun and not waited for, by the numbers that the program knows them by.
// What does not live here: carrying them out (data.cpp).
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "adapters/pnetcdf/access.hpp"

namespace ioweir::pnetcdf {

/// One of them.
struct Pending {
    int id = 0;
    Access access;
    std::int64_t buffered = 0;  ///< bytes of the attached buffer
    int told = no_error;        ///< NC_ERANGE: the program was told when it began it
};

using Chosen = std::vector<std::unique_ptr<Pending>>;

/// In the order in which they were begun. Taking one takes the logarithm of their number.
class PendingList {
public:
    static constexpr int first_id = 0x4000'0000;  // the library's own count from 0

    /// The number that the next one will have. As in the library, they begin again where none is left.
    [[nodiscard]] int next_id() const { return first_id + next_; }
    void add(std::unique_ptr<Pending> pending);
    /// Null: there is none of that number.
    [[nodiscard]] std::unique_ptr<Pending> take(int id);
    /// All for which `is_meant` says so.
    template <typename Meant>
    [[nodiscard]] Chosen take_all(Meant&& is_meant) {
        Chosen taken;
        for (auto& pending : list_)
            if (pending && is_meant(*pending)) taken.push_back(out(pending));
        tidy();
        return taken;
    }
    /// What was taken, and is not done.
    void give_back(Chosen taken);

    [[nodiscard]] std::int64_t count() const { return count_; }
    [[nodiscard]] std::int64_t puts() const { return puts_; }
    /// Bytes of the attached buffer.
    [[nodiscard]] std::int64_t buffered() const { return buffered_; }

private:
    std::unique_ptr<Pending> out(std::unique_ptr<Pending>& pending);
    /// Closes the gaps that taken ones leave, where they are many.
    void tidy();
    void count(const Pending& pending, int by);

    std::vector<std::unique_ptr<Pending>> list_;  // rising ids; null where one was taken
    std::vector<int> ids_;                        // of list_, also of those
    std::int64_t count_ = 0;
    std::int64_t puts_ = 0;
    std::int64_t buffered_ = 0;
    int next_ = 0;
};

}  // namespace ioweir::pnetcdf
