#include "kernels/runner/modes.hpp"

#include <fcntl.h>
#include <limits.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <optional>

#include "base/checked.hpp"
#include "kernels/runner/hdf5.hpp"
#include "kernels/runner/mpi_types.hpp"
#include "kernels/runner/netcdf.hpp"

namespace ioweir::kernels {

namespace {

using layout::Extent;

/// Runs every call, writing and then reading; `open`, `move` and `close` do it one way.
template <typename Open, typename Move, typename Close>
Times both_ways(Job& job, Open open, Move move, Close close) {
    Times times;
    times.right = true;
    Stopwatch around;
    for (const bool writing : {true, false}) {
        Stopwatch watch;
        if (!writing && job.cold) forget_pages(job.rank);
        around.run([&] { open(writing); });
        for (std::int64_t call = 0; call < job.kernel->calls(); ++call) {
            const std::vector<Piece> pieces = job.pieces(call);
            if (writing) job.fill(pieces);
            const bool last = call + 1 == job.kernel->calls();
            move(call, pieces, writing, writing && last && job.sync, watch);
            if (!writing) times.right = job.back_is_right(pieces) && times.right;
        }
        around.run([&] { close(); });
        (writing ? times.write_s : times.read_s) = watch.slowest();
        if (writing) times.write_span_s = watch.span();
    }
    times.open_close_s = around.slowest();
    return times;
}

template <bool collective>
Times run_mpiio(Job& job) {
    std::optional<MpiTypes> types;
    const bool own_pointer = job.kernel->file_type() == FileType::darray;  // as coll_perf.c
    MPI_File file = MPI_FILE_NULL;
    MPI_Info info;
    MPI_Info_create(&info);
    for (const auto& [name, value] : job.hints) MPI_Info_set(info, name.c_str(), value.c_str());
    const auto look = [&](std::int64_t call) {
        types.emplace(*job.kernel, job.rank, call);
        if (types->default_view) return;
        must_mpi(MPI_File_set_view(file, types->displacement, types->etype, types->view, "native", info),
                 "MPI_File_set_view");
    };
    const Times times = both_ways(
        job,
        [&](bool writing) {
            const int amode = writing ? MPI_MODE_CREATE | MPI_MODE_WRONLY : MPI_MODE_RDONLY;
            must_mpi(MPI_File_open(MPI_COMM_WORLD, job.path.c_str(), amode, info, &file), "MPI_File_open");
            if (job.kernel->one_view()) look(0);
        },
        [&](std::int64_t call, const std::vector<Piece>& pieces, bool writing, bool sync, Stopwatch& watch) {
            if (!job.kernel->one_view()) look(call);
            const MPI_Offset calls_before = job.kernel->one_view() ? call : 0;
            const MPI_Offset at = !types->default_view ? calls_before * types->etypes_of_a_call
                                  : pieces.empty()     ? 0
                                                       : pieces.front().file;
            void* data = writing ? job.buffer.data() : job.back.data();
            const int count = types->memory_count;
            MPI_Datatype type = types->memory;
            MPI_Status status;
            watch.run([&] {
                int result;
                if (own_pointer) {
                    if (collective) {
                        result = writing ? MPI_File_write_all(file, data, count, type, &status)
                                         : MPI_File_read_all(file, data, count, type, &status);
                    } else {
                        result = writing ? MPI_File_write(file, data, count, type, &status)
                                         : MPI_File_read(file, data, count, type, &status);
                    }
                } else if (collective) {
                    result = writing ? MPI_File_write_at_all(file, at, data, count, type, &status)
                                     : MPI_File_read_at_all(file, at, data, count, type, &status);
                } else {
                    result = writing ? MPI_File_write_at(file, at, data, count, type, &status)
                                     : MPI_File_read_at(file, at, data, count, type, &status);
                }
                must_mpi(result, writing ? "writing" : "reading");
                if (sync) must_mpi(MPI_File_sync(file), "MPI_File_sync");
            });
        },
        [&] { must_mpi(MPI_File_close(&file), "MPI_File_close"); });
    MPI_Info_free(&info);
    return times;
}

void move_bytes(int fd, char* data, std::int64_t bytes, std::int64_t offset, bool writing) {
    while (bytes > 0) {
        const ssize_t moved = writing ? ::pwrite(fd, data, static_cast<std::size_t>(bytes), offset)
                                      : ::pread(fd, data, static_cast<std::size_t>(bytes), offset);
        must(moved > 0, writing ? "pwrite" : "pread");
        data += moved;
        offset += moved;
        bytes -= moved;
    }
}

/// Opens `path` for one direction; the engine knows nothing of it.
class PosixFile {
public:
    explicit PosixFile(std::string path) : path_(std::move(path)) {}
    void open(bool writing) {
        fd_ = ::open(path_.c_str(), writing ? O_CREAT | O_WRONLY : O_RDONLY, 0666);
        must(fd_ >= 0, path_);
    }
    void sync() { must(::fsync(fd_) == 0, "fsync"); }
    void close() { ::close(fd_); }
    [[nodiscard]] int fd() const { return fd_; }

private:
    std::string path_;
    int fd_ = -1;
};

Times run_posix(Job& job) {
    PosixFile file(job.path);
    return both_ways(
        job, [&](bool writing) { file.open(writing); },
        [&](std::int64_t, const std::vector<Piece>& pieces, bool writing, bool sync, Stopwatch& watch) {
            char* data = writing ? job.buffer.data() : job.back.data();
            watch.run([&] {
                for (const Piece& piece : pieces) {
                    move_bytes(file.fd(), data + piece.memory, piece.length, piece.file, writing);
                }
                if (sync) file.sync();
            });
        },
        [&] { file.close(); });
}

/// Scattered memory to the contiguous end of a file, or back.
void move_vector(int fd, char* data, const std::vector<Piece>& pieces, std::int64_t offset, bool writing) {
    std::vector<iovec> parts;
    for (const Piece& piece : pieces) {
        char* address = data + piece.memory;
        if (!parts.empty() && static_cast<char*>(parts.back().iov_base) + parts.back().iov_len == address) {
            parts.back().iov_len += static_cast<std::size_t>(piece.length);
        } else {
            parts.push_back({address, static_cast<std::size_t>(piece.length)});
        }
    }
    for (std::size_t first = 0; first < parts.size();) {
        const std::size_t count = std::min<std::size_t>(parts.size() - first, IOV_MAX);
        if (count == 1) {  // may be longer than one call moves
            move_bytes(fd, static_cast<char*>(parts[first].iov_base), static_cast<std::int64_t>(parts[first].iov_len),
                       offset, writing);
            offset += static_cast<std::int64_t>(parts[first].iov_len);
        } else {
            std::size_t bytes = 0;
            for (std::size_t i = first; i < first + count; ++i) bytes += parts[i].iov_len;
            const ssize_t moved = writing ? ::pwritev(fd, &parts[first], static_cast<int>(count), offset)
                                          : ::preadv(fd, &parts[first], static_cast<int>(count), offset);
            must(moved == static_cast<ssize_t>(bytes), writing ? "pwritev" : "preadv");
            offset += moved;
        }
        first += count;
    }
}

Times run_fpp(Job& job) {
    const std::string own = job.own_path();
    PosixFile file(own);
    std::int64_t at = 0;
    const Times times = both_ways(
        job,
        [&](bool writing) {
            file.open(writing);
            at = 0;
        },
        [&](std::int64_t, const std::vector<Piece>& pieces, bool writing, bool sync, Stopwatch& watch) {
            watch.run([&] {
                move_vector(file.fd(), writing ? job.buffer.data() : job.back.data(), pieces, at, writing);
                if (sync) file.sync();
            });
            for (const Piece& piece : pieces) at += piece.length;
        },
        [&] { file.close(); });
    ::unlink(own.c_str());
    return times;
}

/// As run_fpp, but every rank's call moves the mean of all.
Times run_uniform(Job& job) {
    const std::int64_t calls = job.kernel->calls();
    const std::int64_t bytes = ceil_divide(job.kernel->file_bytes(), job.ranks * calls);
    const std::string own = job.own_path();
    std::vector<char> data(static_cast<std::size_t>(bytes));
    PosixFile file(own);
    Times times;
    times.right = true;
    for (const bool writing : {true, false}) {
        Stopwatch watch;
        if (!writing && job.cold) forget_pages(job.rank);
        file.open(writing);
        for (std::int64_t call = 0; call < calls; ++call) {
            if (writing) job.content.fill(data.data(), call * bytes, bytes);
            watch.run([&] {
                move_bytes(file.fd(), data.data(), bytes, call * bytes, writing);
                if (writing && job.sync && call + 1 == calls) file.sync();
            });
            if (!writing) times.right = job.content.matches(data.data(), call * bytes, bytes) && times.right;
        }
        file.close();
        (writing ? times.write_s : times.read_s) = watch.slowest();
        if (writing) times.write_span_s = watch.span();
    }
    ::unlink(own.c_str());
    return times;
}

/// Who sends what to whom in a call, worked out beforehand: both sides know the decomposition, as a program's own writer does.
class Exchange {
public:
    Exchange(const Job& job, std::int64_t call, const std::vector<Piece>& pieces)
        : sends_(job.ranks), receives_(job.ranks), send_at_(job.ranks), receive_at_(job.ranks) {
        const CallPattern pattern(job.kernel, call);
        const Extent all = pattern.bounds();
        const std::int64_t part = ceil_divide(all.length, job.ranks);
        const auto domain = [&](int owner) { return layout::intersect(Extent{all.offset + owner * part, part}, all); };
        for (int owner = 0; owner < job.ranks; ++owner) {
            for (const Piece& piece : pieces) {
                const Extent mine = layout::intersect(domain(owner), Extent{piece.file, piece.length});
                if (mine.empty()) continue;
                packed_.push_back({mine.offset, piece.memory + mine.offset - piece.file, mine.length});
                sends_[owner] += static_cast<int>(mine.length);
            }
        }
        domain_ = domain(job.rank);
        for (int source = 0; source < job.ranks; ++source) {
            pattern.visit(source, domain_, [&](Extent extent) {
                received_.push_back(extent);
                receives_[source] += static_cast<int>(extent.length);
            });
        }
        std::exclusive_scan(sends_.begin(), sends_.end(), send_at_.begin(), 0);
        std::exclusive_scan(receives_.begin(), receives_.end(), receive_at_.begin(), 0);
        covered_ = layout::normalized(received_);
        outgoing_.resize(static_cast<std::size_t>(std::accumulate(sends_.begin(), sends_.end(), std::int64_t{0})));
        incoming_.resize(
            static_cast<std::size_t>(std::accumulate(receives_.begin(), receives_.end(), std::int64_t{0})));
        sorted_.resize(static_cast<std::size_t>(domain_.length));
    }

    void write(const std::vector<char>& buffer, int fd) {
        char* to = outgoing_.data();
        for (const Piece& piece : packed_) {
            std::memcpy(to, buffer.data() + piece.memory, static_cast<std::size_t>(piece.length));
            to += piece.length;
        }
        MPI_Alltoallv(outgoing_.data(), sends_.data(), send_at_.data(), MPI_BYTE, incoming_.data(), receives_.data(),
                      receive_at_.data(), MPI_BYTE, MPI_COMM_WORLD);
        const char* from = incoming_.data();
        for (const Extent& extent : received_) {
            std::memcpy(place(extent), from, static_cast<std::size_t>(extent.length));
            from += extent.length;
        }
        for (const Extent& extent : covered_) move_bytes(fd, place(extent), extent.length, extent.offset, true);
    }

    void read(std::vector<char>& back, int fd) {
        for (const Extent& extent : covered_) move_bytes(fd, place(extent), extent.length, extent.offset, false);
        char* to = incoming_.data();
        for (const Extent& extent : received_) {
            std::memcpy(to, place(extent), static_cast<std::size_t>(extent.length));
            to += extent.length;
        }
        MPI_Alltoallv(incoming_.data(), receives_.data(), receive_at_.data(), MPI_BYTE, outgoing_.data(), sends_.data(),
                      send_at_.data(), MPI_BYTE, MPI_COMM_WORLD);
        const char* from = outgoing_.data();
        for (const Piece& piece : packed_) {
            std::memcpy(back.data() + piece.memory, from, static_cast<std::size_t>(piece.length));
            from += piece.length;
        }
    }

private:
    [[nodiscard]] char* place(Extent extent) { return sorted_.data() + (extent.offset - domain_.offset); }

    std::vector<int> sends_, receives_, send_at_, receive_at_;
    std::vector<Piece> packed_;  ///< what this rank gives, by owner and file offset
    Extent domain_;
    layout::ExtentList received_;  ///< what the owner of the domain gets, by source and file offset
    layout::ExtentList covered_;   ///< the same, as the file has it
    std::vector<char> outgoing_, incoming_, sorted_;
};

Times run_exchange(Job& job) {
    PosixFile file(job.path);
    return both_ways(
        job, [&](bool writing) { file.open(writing); },
        [&](std::int64_t call, const std::vector<Piece>& pieces, bool writing, bool sync, Stopwatch& watch) {
            Exchange exchange(job, call, pieces);
            watch.run([&] {
                if (writing) {
                    exchange.write(job.buffer, file.fd());
                } else {
                    exchange.read(job.back, file.fd());
                }
                if (sync) file.sync();
            });
        },
        [&] { file.close(); });
}

/// Also where a plan has divided it among several.
void remove_file(const Job& job) { MPI_File_delete(job.path.c_str(), MPI_INFO_NULL); }

constexpr Mode modes[] = {{"mpiio", true, run_mpiio<true>, remove_file},
                          {"independent", true, run_mpiio<false>, remove_file},
                          {"posix", true, run_posix, remove_file},
                          {"exchange", true, run_exchange, remove_file},
                          {"fpp", false, run_fpp, remove_file},
                          {"uniform", false, run_uniform, remove_file},
                          {netcdf_mode, false, run_netcdf, remove_netcdf},
                          {hdf5_mode, false, run_hdf5, remove_file}};

}  // namespace

std::span<const Mode> known_modes() { return modes; }

}  // namespace ioweir::kernels
