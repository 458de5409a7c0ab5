#include "container/sharing/replaced.hpp"

#include <algorithm>
#include <utility>

#include "container/index/map.hpp"

namespace ioweir::container {
namespace {

using layout::Extent;

constexpr std::string_view written_prefix = "written.";

/// What generations have written, wherever it lies, and from where on one of them has cut the file off.
struct Written {
    LogicalMap map;
    std::int64_t cut = INT64_MAX;
};

Result<std::vector<IndexFile>> files_that_say_it(const Directory& directory) {
    if (directory.has_index()) return index_files(directory);
    const auto there = names_in(directory);
    if (!there) return there.error();
    std::vector<IndexFile> files;
    for (const std::string& name : there.value()) {
        if (const auto writer = writer_after(name, written_prefix))
            files.push_back({name, writer->generation, writer->rank});
    }
    return files;
}

Result<Written> written_by(const Directory& directory, const Generations& generations, std::uint32_t first) {
    auto files = files_that_say_it(directory);
    if (!files) return files.error();
    Written written;
    for (const IndexFile& file : files.value()) {
        if (file.generation < first || !generations.was_ended(file.generation)) continue;
        std::vector<Batch> batches;
        bool its = true;
        const auto walked = walk_index(directory, file, [&](Batch batch) {
            its = its && batch.time.generation == file.generation && batch.time.rank == file.rank;
            const auto says_length = [](const Run& entry) { return entry.place < 0; };
            for (const Run& entry : batch.entries) {
                if (entry.place == cut_here) written.cut = std::min(written.cut, entry.offset);
            }
            // Bytes that are cut off later need nobody who writes them, and where they lie does not matter.
            std::erase_if(batch.entries, says_length);
            written.map.add(std::move(batch));
        });
        if (!walked) return walked.error();
        if (!its || !walked.value().damage.empty())
            return Error{"a damaged index of an ioweir container",
                         directory.path_of(file.name) + ": " + walked.value().damage, "restore it from a copy"};
    }
    written.map.settle();
    return written;
}

}  // namespace

Result<Extent> first_kept(const Directory& directory, const Generations& generations, std::uint32_t first,
                          std::int64_t length) {
    const auto written = written_by(directory, generations, first);
    if (!written) return written.error();
    const std::int64_t end = std::min(length, written.value().cut);
    std::int64_t at = 0;
    while (at < end) {
        const Segment segment = written.value().map.locate(at);
        if (segment.source < 0) return Extent{at, std::min(segment.logical.end(), end) - at};
        at = segment.logical.end();
    }
    return Extent{};
}

void put_aside_replaced(const Directory& directory) {
    const auto generations = generations_in(directory);
    if (!generations) return;
    std::optional<std::int64_t> bytes;
    bool dead_left = false;
    for (const std::uint32_t number : generations.value().open) {
        const auto later = dead_before(directory, number);
        if (!later) continue;
        if (!bytes) {
            const auto now = length(directory);
            if (!now) return;
            bytes = now.value();
        }
        const auto kept = first_kept(directory, generations.value(), *later, *bytes);
        const bool replaced = kept && kept.value().empty() && put_aside(directory, number) == 0;
        dead_left = dead_left || !replaced;
    }
    if (!bytes || dead_left || directory.has_index()) return;
    const auto files = files_that_say_it(directory);
    const auto folder = directory.opened();
    if (!files || !folder) return;
    for (const IndexFile& file : files.value()) (void)folder.value()->remove(file.name);
}

std::string unfinished_text(const Directory& directory, std::uint32_t generation, std::int64_t length) {
    const std::string begun = "writing was begun and not ended (generation " + std::to_string(generation) + "): ";
    const Life life = life_of(directory, generation);
    if (life == Life::alive) return begun + "a job still writes; what it writes after its last sync is not there";
    std::string text = begun + (life == Life::dead ? "its job has died" : "a job still writes, or has died") +
                       "; what it wrote after its last sync is not there";
    const auto later = dead_before(directory, generation);
    const auto generations = generations_in(directory);
    if (!later || !generations) return text;
    const auto kept = first_kept(directory, generations.value(), *later, length);
    if (!kept || kept.value().empty()) return text;
    return text + ", and bytes " + std::to_string(kept.value().offset) + " to " +
           std::to_string(kept.value().end() - 1) + " were not written again since";
}

std::string written_file(std::uint32_t generation, std::uint32_t rank) {
    return std::string(written_prefix) + std::to_string(generation) + "." + std::to_string(rank);
}

bool is_written_file(const std::string& name) { return writer_after(name, written_prefix).has_value(); }

}  // namespace ioweir::container
