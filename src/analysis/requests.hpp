// Requests: what the MPI-IO calls of a trace asked for, as file extents: offsets in the file, not in a view, also of calls that
// use a handle's own pointer or view.
// What does not live here: sums and times (summary.hpp), what ought to be done with them (planner).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "analysis/type_table.hpp"
#include "format/reader.hpp"
#include "layout/core/extent.hpp"
#include "layout/core/piece_cursor.hpp"

namespace ioweir::analysis {

/// One call that moved data, in the order of a process's calls. A split collective counts where it ends.
struct Request {
    std::uint32_t process = 0;  ///< index into Trace::processes
    std::uint32_t thread = 0;   ///< index into TraceFiles::threads()
    std::uint32_t sequence = 0;
    std::uint32_t access = 0;  ///< index into Trace::accesses; 0: the file's handle is not known
    std::uint32_t path = 0;    ///< index into Trace::paths
    std::uint16_t function = 0;
    bool write = false;
    bool collective = false;
    std::int64_t start_ns = 0;
    std::int64_t duration_ns = 0;
    std::int64_t bytes = 0;
    std::int64_t first_byte = -1;  ///< of the view's data; -1: not known, nor are the extents
};

/// The calls that use the pointer that ranks share have no extents: in which order they came, no rank knows. After a read that met the
/// end of the file its handle's own pointer is taken to be there, where MPI libraries differ.
class Requests {
public:
    /// Goes through all events of the trace, which must outlive it. Takes 72 bytes a request.
    explicit Requests(const format::TraceFiles& files);

    [[nodiscard]] const std::vector<Request>& all() const { return requests_; }
    /// Walks over a request's extents in the order of its data; nothing when they are not known. Neighbours are joined.
    [[nodiscard]] std::optional<layout::PieceCursor> extents(const Request& request) const;
    /// The bytes of a request in memory, relative to the address of its buffer, in the order of its data; nothing when the type is not known.
    [[nodiscard]] std::optional<layout::PieceCursor> memory(const Request& request) const;

private:
    struct Pointers;
    void read_process(const format::TraceFiles& files, std::uint32_t process,
                      const std::vector<std::uint32_t>& threads);
    void take(const format::Event& event, std::uint32_t process, Pointers& pointers);
    [[nodiscard]] std::int64_t etype_bytes(const format::Access& access) const;

    const format::Trace& trace_;
    TypeTable types_;
    layout::FlatType bytes_;  ///< of a file that has no view
    std::vector<Request> requests_;
};

}  // namespace ioweir::analysis
