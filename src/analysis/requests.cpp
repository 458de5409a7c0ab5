#include "analysis/requests.hpp"

#include <string_view>
#include <unordered_map>
#include <utility>

#include "base/checked.hpp"

namespace ioweir::analysis {
namespace {

using format::Access;
using format::Event;
using format::Function;
using format::Position;

constexpr std::int64_t farthest = std::int64_t{1} << 60;

/// What an event means here, by its function.
struct Kind {
    bool mpi_io = false;
    bool read = false;
    bool write = false;
    bool begins = false;  ///< a split collective
    bool ends = false;
    bool collective = false;
    Position position = Position::none;
};

std::vector<Kind> kinds() {
    std::vector<Kind> all(format::function_count);
    for (std::size_t i = 1; i < all.size(); ++i) {
        const format::FunctionInfo& info = format::functions[i];
        const std::string_view op = info.op;
        all[i] = {.mpi_io = std::string_view(info.layer) == "MPI-IO",
                  .read = op == "read" && !info.completes,
                  .write = op == "write" && !info.completes,
                  .begins = op == "split",
                  .ends = std::string_view(info.name).ends_with("_end"),
                  .collective = info.collective,
                  .position = info.position};
    }
    return all;
}

/// A position in a view's data; -1 where it is unknown, cannot be, or lies beyond anything.
std::int64_t times(std::int64_t etypes, std::int64_t bytes) {
    const auto product = checked_multiply(etypes, bytes);
    return etypes < 0 || bytes < 0 || !product || *product > farthest ? -1 : *product;
}
std::int64_t moved(std::int64_t pointer, std::int64_t bytes) {
    return pointer < 0 || bytes < 0 || bytes > farthest - pointer ? -1 : pointer + bytes;
}

}  // namespace

/// The open files of a process, by the number of their handle: where their own pointers are, and what a split collective begins.
struct Requests::Pointers {
    std::unordered_map<std::uint32_t, std::int64_t> own;
    std::unordered_map<std::uint32_t, std::int64_t> begun;

    std::int64_t& at(const Access& access) { return own.try_emplace(access.handle, access.pointer).first->second; }
};

Requests::Requests(const format::TraceFiles& files)
    : trace_(files.about()), types_(trace_), bytes_(layout::FlatTypeBuilder::run(0, 1).build(0, 1)) {
    std::vector<std::vector<std::uint32_t>> threads(trace_.processes.size());
    for (std::uint32_t thread = 0; thread < files.threads().size(); ++thread)
        threads[files.threads()[thread].process].push_back(thread);
    for (std::uint32_t process = 0; process < threads.size(); ++process) read_process(files, process, threads[process]);
}

/// Calls of a handle go by when they began: what several threads do at once with one pointer is in no order anyway.
void Requests::read_process(const format::TraceFiles& files, std::uint32_t process,
                            const std::vector<std::uint32_t>& threads) {
    static const std::vector<Kind> kind_of = kinds();
    struct Head {
        format::ThreadCursor cursor;
        Event event;
        bool left;
    };
    std::vector<Head> heads;
    const auto advance = [&](Head& head) {
        do {
            head.left = head.cursor.next(head.event);
        } while (head.left && !kind_of[head.event.function].mpi_io);
    };
    heads.reserve(threads.size());
    for (const std::uint32_t thread : threads) {
        heads.push_back({files.cursor(thread), {}, false});
        advance(heads.back());
    }
    Pointers pointers;
    for (;;) {
        Head* first = nullptr;
        for (Head& head : heads)
            if (head.left && (first == nullptr || head.event.start_ns < first->event.start_ns)) first = &head;
        if (first == nullptr) return;
        take(first->event, process, pointers);
        advance(*first);
    }
}

std::int64_t Requests::etype_bytes(const Access& access) const {
    const format::View& view = trace_.views[access.view];
    if (!access.has_view) return -1;
    return view.set ? trace_.datatypes[view.etype].size : 1;
}

void Requests::take(const Event& event, std::uint32_t process, Pointers& pointers) {
    static const std::vector<Kind> kind_of = kinds();
    const Kind& kind = kind_of[event.function];
    const Access& access = trace_.accesses[event.access];
    const bool known = event.access != 0;
    if (event.failed) {
        if (known && kind.ends) pointers.begun.erase(access.handle);
        return;
    }
    const auto function = static_cast<Function>(event.function);
    if (known && function == Function::MPI_File_set_view) pointers.at(access) = 0;
    if (known && function == Function::MPI_File_seek) pointers.at(access) = times(event.offset, etype_bytes(access));
    if (!kind.read && !kind.write && !kind.begins) return;

    std::int64_t first_byte = -1;
    if (known && kind.ends) {
        const auto begun = pointers.begun.find(access.handle);
        if (begun != pointers.begun.end()) {
            first_byte = begun->second;
            pointers.begun.erase(begun);
        }
    } else if (known && kind.position == Position::given) {
        first_byte = times(event.offset, etype_bytes(access));
    } else if (known && kind.position == Position::individual) {
        first_byte = pointers.at(access);
    }
    if (kind.begins) {
        if (known) pointers.begun[access.handle] = first_byte;
        return;
    }
    if (known && kind.position == Position::individual) pointers.at(access) = moved(first_byte, event.bytes);
    requests_.push_back({process, event.thread, event.sequence, event.access, event.path, event.function, kind.write,
                         kind.collective, event.start_ns, event.duration_ns, event.bytes, first_byte});
}

std::optional<layout::PieceCursor> Requests::extents(const Request& request) const {
    const Access& access = trace_.accesses[request.access];
    if (request.first_byte < 0 || request.bytes < 0 || !access.has_view || moved(request.first_byte, request.bytes) < 0)
        return std::nullopt;
    const format::View& view = trace_.views[access.view];
    if (!view.set) return layout::PieceCursor(bytes_, 0, request.first_byte, request.bytes);
    const auto filetype = types_.find(view.filetype);
    if (filetype == nullptr || !view.representation.empty() || (filetype->size == 0 && request.bytes > 0))
        return std::nullopt;
    if (request.bytes == 0) return layout::PieceCursor(*filetype, view.displacement, 0, 0);
    // Where the last instance lies must be a number.
    const std::int64_t instances = (request.first_byte + request.bytes) / filetype->size + 1;
    const auto reach = checked_multiply(instances, filetype->extent);
    if (!reach || *reach > farthest || *reach < -farthest) return std::nullopt;
    return layout::PieceCursor(*filetype, view.displacement, request.first_byte, request.bytes);
}

std::optional<layout::PieceCursor> Requests::memory(const Request& request) const {
    const auto type = types_.find(trace_.accesses[request.access].memory);
    if (type == nullptr || request.bytes < 0 || request.bytes > farthest) return std::nullopt;
    if (request.bytes == 0) return layout::PieceCursor(bytes_, 0, 0, 0);
    if (type->size == 0) return std::nullopt;
    const auto reach = checked_multiply(request.bytes / type->size + 1, type->extent);
    if (!reach || *reach > farthest || *reach < -farthest) return std::nullopt;
    return layout::PieceCursor(*type, 0, 0, request.bytes);
}

}  // namespace ioweir::analysis
