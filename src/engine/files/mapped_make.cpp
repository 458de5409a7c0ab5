#include "engine/files/mapped_make.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <optional>

#include "base/standard_error.hpp"
#include "container/files/access.hpp"
#include "container/files/subfiles.hpp"
#include "container/sharing/generations.hpp"
#include "container/sharing/locks.hpp"
#include "engine/files/header_file_lock.hpp"
#include "engine/parts.hpp"
#include "planner/plan.hpp"

namespace ioweir::engine {
namespace {

using planner::MappingKind;

container::Shape shape_of(const planner::Strategy& strategy, const Placing& placing) {
    constexpr std::int64_t usual_stripe_bytes = 1 << 20;
    const planner::Mapping& mapping = strategy.mapping;
    if (mapping.kind == MappingKind::subfiles) {
        const std::int64_t stripe = strategy.stripe.size_bytes;
        const std::int64_t count = placing.count > 0 ? placing.count : mapping.count;
        return {count, container::Shape::Kind::subfiles, stripe > 0 ? stripe : usual_stripe_bytes};
    }
    if (mapping.kind == MappingKind::log) return {0, container::Shape::Kind::log};
    return {mapping.count, container::Shape::Kind::grouped};
}

/// Where they go: to the targets that were chosen, else to the plan's directories, else beside the file.
Result<container::Subfiles> make_subfiles(const container::Directory& directory, const policy::FileRule* rule,
                                          const Placing& placing) {
    if (placing.targets) {
        const auto make = [&](std::int64_t number, const std::string& path) {
            const std::int32_t target = placing.chosen[static_cast<std::size_t>(number) % placing.chosen.size()];
            return placing.targets->create(path, layout::StripeLayout::unstriped(target), O_WRONLY, 0600);
        };
        return container::make_subfiles(directory, {}, make);
    }
    if (!placing.directories.empty()) return container::make_subfiles(directory, placing.directories);
    return container::make_subfiles(directory, rule != nullptr ? rule->targets : std::vector<std::string>{});
}

/// Rank 0: a generation for these ranks.
std::optional<Error> begin(const container::Directory& directory, bool is_new, OpenBroadcast& told, Held& held) {
    auto generation = container::begin_generation(directory, is_new);
    if (!generation) return generation.error();
    told.generation = generation.value().number;
    told.stamp = generation.value().after;
    told.after_dead = generation.value().after_dead ? 1 : 0;
    held.generation = std::move(generation.value().lock);
    return std::nullopt;
}

/// Rank 0: the directory with a generation in it, then the header file, so that nobody finds a container that no one uses.
Result<container::HeaderFile> make_container(Engine& engine, const Handle& handle, const policy::FileRule* rule,
                                             const Placing& placing, OpenBroadcast& told, Held& held, int& error) {
    error = EIO;
    const StorageScope scope(engine);
    auto header_file = container::new_header_file(shape_of(handle.strategy, placing));
    if (!header_file) return header_file.error();
    const auto cannot = [&](int number) {
        error = number;
        return Error{"no container can be made", handle.path + ": " + std::strerror(number),
                     "its directory must be writable and have room"};
    };
    const container::Directory directory = container::directory_of(handle.path, header_file.value());
    if (const int made = container::make(directory, handle.path, header_file.value(), handle.descriptor.number);
        made != 0)
        return cannot(made);
    held.directory = container::DirectoryHold(directory);
    std::optional<Error> problem = begin(directory, true, told, held);
    if (!problem && !directory.has_index()) {
        const auto made = make_subfiles(directory, rule, placing);
        if (!made) problem = made.error();
    }
    if (!problem) {
        const std::string text = container::to_text(header_file.value());
        const auto written = engine.backend.write_at(handle.descriptor.number, text.data(), std::ssize(text), 0);
        if (written.error != 0) problem = cannot(written.error);
    }
    if (!problem) return header_file.take();
    (void)container::remove(directory);
    return *problem;
}

/// subfiles:auto, and nobody knows on which targets; empty: it is known.
std::string why_no_targets(const Handle& handle, const Placing& placing) {
    const bool nobody_says =
        handle.strategy.mapping.count == 0 && handle.strategy.mapping.kind == MappingKind::subfiles;
    if (!nobody_says || placing.count > 0) return {};
    return placing.why_not.empty() ? "it was there when targets would have been probed" : placing.why_not;
}

void note_places(const Engine& engine, const Handle& handle, const Placing& placing) {
    std::string text = placing.said;
    const bool logs = handle.strategy.mapping.kind == MappingKind::log;
    if (!placing.why_not.empty())
        text = std::string(logs ? "logs lie beside the file: " : "subfiles lie beside the file: ") + placing.why_not;
    if (!text.empty()) note(engine, format::NoteCode::message, handle.path, 0, text);
}

/// The container that is there, or a new one, or why the file is shared: rank 0.
OpenBroadcast find_or_make(Engine& engine, Handle& handle, const Found& found, const policy::FileRule* rule,
                           const Placing& placing, Held& held) {
    OpenBroadcast told;
    if (found.kind == Found::Kind::header_file) {
        put(told, found.header_file);
        return told;
    }
    std::string why;
    std::optional<container::HeaderFile> header_file;
    std::string problem;
    int error = 0;
    {
        std::unique_ptr<HeaderFileLock> lock;
        {
            const StorageScope scope(engine);
            if (handle.writable) lock = std::make_unique<HeaderFileLock>(handle.descriptor.number, handle.path);
            why = why_shared(handle, rule);
            // Another job may have made it since we looked.
            if (!why.empty()) {
                auto there = read_header_file(engine, handle.path);
                if (there) header_file = there.take();
            }
        }
        if (why.empty()) {
            why = why_no_targets(handle, placing);
            if (!why.empty())  // noted below
                say_line("ioweir: " + handle.path + ": it is shared, not divided into subfiles: " + why + "\n");
        }
        if (why.empty() && lock->problem()) {
            problem = lock->problem()->message();
            error = EAGAIN;
        } else if (why.empty()) {
            auto made = make_container(engine, handle, rule, placing, told, held, error);
            if (made) {
                header_file = made.take();
                note_places(engine, handle, placing);
            } else {
                problem = made.error().message();
            }
        }
        const StorageScope scope(engine);
        lock.reset();
    }
    if (header_file) {
        put(told, *header_file);
    } else if (!why.empty()) {
        note(engine, format::NoteCode::message, handle.path, 0,
             "mapping " + planner::to_text(handle.strategy.mapping) + " is not used, the file is shared: " + why);
    } else {
        complain(engine, handle.path, problem);
        told.kind = -error_class(error);
    }
    return told;
}

}  // namespace

std::string why_shared(const Handle& handle, const policy::FileRule* rule) {
    if (!handle.writable) return "it is open for reading only and no container";
    const bool at_sync = handle.strategy.mapping.kind != MappingKind::subfiles;  // else at once, as in one file
    if (handle.readable && at_sync && (rule == nullptr || rule->visibility == policy::Visibility::unsaid))
        return "it is open for reading and writing, and the rule has no visibility: write visibility = \"sync\" where "
               "nobody reads what others write before a sync, else \"call\"";
    struct stat info{};
    if (::fstat(handle.descriptor.number, &info) != 0) return std::string("fstat: ") + std::strerror(errno);
    if (info.st_size != 0) return "an ordinary file is there already";
    return {};
}

void put(OpenBroadcast& told, const container::HeaderFile& header_file) {
    told.kind = static_cast<std::int64_t>(Found::Kind::header_file);
    told.shape_kind = static_cast<std::int64_t>(header_file.shape.kind);
    told.count = header_file.shape.count;
    told.stripe_bytes = header_file.shape.stripe_bytes;
    told.version = header_file.version;
    told.owner = header_file.owner ? std::int64_t{*header_file.owner} : -1;
    std::copy(header_file.id.begin(), header_file.id.end(), told.id.begin());
}

container::HeaderFile header_file_of(const OpenBroadcast& told) {
    return {std::string(told.id.begin(), told.id.end()),
            {told.count, static_cast<container::Shape::Kind>(told.shape_kind), told.stripe_bytes},
            static_cast<int>(told.version),
            told.owner < 0 ? std::nullopt : std::optional(static_cast<uid_t>(told.owner))};
}

OpenBroadcast prepare(Engine& engine, Handle& handle, const Found& found, const policy::FileRule* rule,
                      const Placing& placing, Held& held) {
    OpenBroadcast told = find_or_make(engine, handle, found, rule, placing, held);
    if (told.kind != static_cast<std::int64_t>(Found::Kind::header_file) || told.generation > 0) return told;
    const StorageScope scope(engine);
    // Whoever makes an ordinary file of it has done so, or finds afterwards that a generation writes it, or that it is in use.
    auto lock = container::HeaderFileLock::take(handle.path, container::HeaderFileLock::Kind::shared);
    const container::HeaderFile header_file = header_file_of(told);
    if (!lock && lock.error().number == EAGAIN) {
        complain(engine, handle.path, lock.error().message());
        told.kind = -MPI_ERR_IO;
        return told;
    }
    if (!lock || lock.value().header_file() != header_file || !lock.value().is_of(handle.descriptor.number)) {
        told.kind = OpenBroadcast::changed;
        return told;
    }
    const container::Directory directory = container::directory_of(handle.path, header_file);
    held.directory = container::DirectoryHold(directory);
    if (!handle.writable) return told;
    // It may have been changed by hand. Where that is not possible, the job's own parts still are as the directory is.
    (void)container::follow_header_file(directory, handle.descriptor.number);
    // Who deals stripes anew (rebalance.hpp) must not overlook a generation that begins at that moment.
    const HeaderFileLock dealing(handle.descriptor.number, handle.path);
    auto problem = dealing.problem();
    if (!problem) problem = begin(directory, false, told, held);
    if (problem) {
        complain(engine, handle.path, problem->message());
        told.kind = -MPI_ERR_IO;
    }
    return told;
}

}  // namespace ioweir::engine
