// Where the bytes of a file lie: asked of the file system when a file is opened, and asked for when it is made.
// What does not live here: how file systems are asked (storage/file_layout.hpp), what follows for who writes what (planner).
#include <sys/stat.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <string>

#include "base/size_text.hpp"
#include "engine/parts.hpp"

namespace ioweir::engine {
namespace {

using storage::FileLayout;

std::string text_of(std::int64_t stripe_bytes, std::int64_t stripe_count) {
    std::string text = stripe_bytes > 0 ? "stripes of " + exact_size_text(stripe_bytes) : "stripes";
    return stripe_count > 0 ? text + " over " + std::to_string(stripe_count) + " targets" : text;
}

bool differs(const planner::Stripe& wanted, const FileLayout& there) {
    return (wanted.size_bytes > 0 && wanted.size_bytes != there.stripe_bytes) ||
           (wanted.count > 0 && wanted.count != there.stripe_count);
}

/// One rank, for all.
FileLayout settle_layout(Engine& engine, const Handle& handle) {
    const planner::Stripe& wanted = handle.strategy.stripe;
    FileLayout there;
    int error = 0;
    bool empty = false;
    {
        const StorageScope scope(engine);
        const int descriptor = handle.descriptor.number;
        there = engine.backend.striping_of(descriptor);
        if (there.told_by == storage::Teller::nobody || !differs(wanted, there)) return there;
        struct stat info{};
        empty = ::fstat(descriptor, &info) == 0 && info.st_size == 0;
        if (empty && handle.writable) {
            error = engine.backend.ask_for_striping(descriptor, {wanted.size_bytes, wanted.count});
            if (error == 0) there = engine.backend.striping_of(descriptor);
        }
    }
    if (differs(wanted, there)) {
        std::string why = "; a file's striping is chosen when it is made";
        if (empty && error != 0 && error != ENOTSUP) why = std::string("; asked for, ") + std::strerror(error);
        note(engine, format::NoteCode::message, handle.path, 0,
             text_of(wanted.size_bytes, wanted.count) + " wanted, " + storage::name_of(there.told_by) + " has " +
                 text_of(there.stripe_bytes, there.stripe_count) + why);
    }
    return there;
}

}  // namespace

void adopt_striping(Engine& engine, Handle& handle) {
    std::array<std::int64_t, 2> told{};
    if (handle.rank == 0) {
        const FileLayout there = settle_layout(engine, handle);
        told = {there.stripe_bytes, there.stripe_count};
    }
    if (handle.size > 1) PMPI_Bcast(told.data(), static_cast<int>(told.size()), MPI_INT64_T, 0, handle.comm);
    handle.stored.size_bytes = told[0];
    handle.stored.count = told[1];
    planner::Stripe& stripe = handle.strategy.stripe;
    if (stripe.size_bytes > 0) return;
    stripe.size_bytes = told[0];
    if (stripe.count == 0) stripe.count = told[1];
}

}  // namespace ioweir::engine
