#include "case_runner.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <numeric>

#include "naive_type.hpp"
#include "random.hpp"
#include "views.hpp"

namespace cases {

const IoCalls mpi_calls{MPI_File_open,         MPI_File_close,       MPI_File_set_view,  MPI_File_read_at,
                        MPI_File_read_at_all,  MPI_File_read,        MPI_File_read_all,  MPI_File_write_at,
                        MPI_File_write_at_all, MPI_File_write,       MPI_File_write_all, MPI_File_sync,
                        MPI_File_seek,         MPI_File_get_position};

namespace {

enum class Function { at, at_all, pointer, pointer_all };

const char* name_of(Function function) {
    switch (function) {
        case Function::at:
            return "_at";
        case Function::at_all:
            return "_at_all";
        case Function::pointer:
            return "";
        default:
            return "_all";
    }
}

/// Memory with room before and behind, where nothing may be changed.
struct Buffer {
    std::vector<unsigned char> bytes;
    std::int64_t origin = 0;  ///< index of the datatype's displacement 0

    Buffer(const NaiveType& type, std::int64_t count) {
        std::int64_t low = 0, high = 1;
        for (std::int64_t i = 0; i < count * type.size(); ++i) {
            low = std::min(low, type.displacement(i));
            high = std::max(high, type.displacement(i) + 1);
        }
        constexpr std::int64_t margin = 16;
        origin = margin - low;
        bytes.resize(static_cast<std::size_t>(high - low + 2 * margin));
        for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<unsigned char>(0xA5 ^ i);
    }
    [[nodiscard]] void* address() { return bytes.data() + origin; }
    unsigned char& at(std::int64_t displacement) { return bytes[static_cast<std::size_t>(origin + displacement)]; }
};

class Case {
public:
    Case(const IoCalls& io, Level level, std::uint64_t seed, std::uint64_t index, MPI_Comm comm,
         const std::string& path)
        : io_(io), level_(level), comm_(comm), path_(path), shared_(seed, index) {
        MPI_Comm_rank(comm, &rank_);
        MPI_Comm_size(comm, &ranks_);
        own_ = Random(seed, index, static_cast<std::uint64_t>(rank_) + 1);
    }

    CaseResult run() {
        prepare_file();
        const bool reopen = shared_.one_in(3);
        open(reopen ? MPI_MODE_CREATE | MPI_MODE_WRONLY : MPI_MODE_CREATE | MPI_MODE_RDWR);
        const std::int64_t phases = shared_.between(1, 2);
        for (std::int64_t i = 0; i < phases; ++i) write_phase();
        if (reopen) {
            close();
            MPI_Barrier(comm_);
            open(MPI_MODE_RDONLY);
        }
        read_phase();
        close();
        MPI_Barrier(comm_);
        compare_file();
        MPI_Barrier(comm_);
        if (rank_ == 0) ::unlink(path_.c_str());
        MPI_Barrier(comm_);
        return std::move(result_);
    }

private:
    void problem(const std::string& text) {
        if (result_.problems.size() < 5) result_.problems.push_back(text);
    }
    void must(int code, const char* what) {
        if (code != MPI_SUCCESS) problem(std::string(what) + " returned " + std::to_string(code));
    }

    /// Half of the cases write into a file that has contents already.
    void prepare_file() {
        if (rank_ == 0) ::unlink(path_.c_str());
        if (shared_.one_in(2)) {
            model_.resize(static_cast<std::size_t>(shared_.between(1, 20000)));
            defined_.assign(model_.size(), true);
            for (std::size_t i = 0; i < model_.size(); ++i) model_[i] = static_cast<unsigned char>(Random::mix(i) >> 9);
            if (rank_ == 0) {
                const int fd = ::open(path_.c_str(), O_CREAT | O_WRONLY | O_TRUNC, 0666);
                if (::write(fd, model_.data(), model_.size()) != std::ssize(model_)) problem("cannot prepare the file");
                ::close(fd);
            }
        }
        MPI_Barrier(comm_);
    }

    void open(int amode) { must(io_.open(comm_, path_.c_str(), amode, MPI_INFO_NULL, &file_), "open"); }
    void close() { must(io_.close(&file_), "close"); }

    NaiveView new_view(const char* purpose) {
        NaiveView view = random_view(shared_, rank_, ranks_);
        char native[] = "native";
        must(io_.set_view(file_, view.displacement, view.etype.type, view.filetype.type, native, MPI_INFO_NULL),
             "set_view");
        result_.text += std::string(purpose) + " etype " + view.etype.text + ", filetype " + view.text +
                        ", displacement " + std::to_string(view.displacement) + "; ";
        pointer_ = 0;
        return view;
    }

    /// What one call does on this rank.
    struct Step {
        Function function = Function::at;
        NaiveType memory;
        std::int64_t count = 0;
        std::int64_t offset = 0;  ///< in etypes
        std::int64_t bytes = 0;
    };

    Step random_step(const NaiveView& view) {
        Step step;
        step.function =
            shared_.pick({Function::at, Function::at_all, Function::at_all, Function::pointer, Function::pointer_all});
        const std::int64_t etype = view.etype.size();
        const std::int64_t last = view.first_etype + view.etypes;
        if (step.function == Function::pointer || step.function == Function::pointer_all) {
            if (pointer_ < view.first_etype || pointer_ >= last || own_.one_in(3)) {
                pointer_ = own_.between(view.first_etype, last - 1);
                must(io_.seek(file_, pointer_, MPI_SEEK_SET), "seek");
            }
            step.offset = pointer_;
        } else {
            step.offset = own_.between(view.first_etype, last - 1);
        }
        const std::int64_t max_bytes = own_.one_in(4) ? 3000 : 200;
        step.memory =
            level_ == Level::wild ? random_memory_type(own_, max_bytes, 1) : tame_memory_type(own_, max_bytes);
        // As many instances as make whole etypes.
        const std::int64_t unit = etype / std::gcd(etype, step.memory.size());
        const std::int64_t room = (last - step.offset) * etype;
        step.count = room / (unit * step.memory.size()) * unit;
        if (step.count == 0) {  // none fits: bytes, then
            step.memory = predefined(MPI_BYTE);
            step.count = room;
        }
        if (own_.one_in(2))
            step.count = own_.between(1, step.count / etype + 1) * etype > step.count ? step.count : etype;
        if (step.count * step.memory.size() % etype != 0) step.count = room / (unit * step.memory.size()) * unit;
        if (own_.one_in(8)) step.count = 0;
        while (step.count > 0 && overlapping(step.memory, step.count)) step.count -= unit_of(step, etype);
        step.bytes = step.count * step.memory.size();
        return step;
    }

    static std::int64_t unit_of(const Step& step, std::int64_t etype) {
        return std::min(step.count, etype / std::gcd(etype, step.memory.size()));
    }

    static bool overlapping(const NaiveType& type, std::int64_t count) {
        std::vector<std::int64_t> all;
        for (std::int64_t i = 0; i < count * type.size(); ++i) all.push_back(type.displacement(i));
        std::sort(all.begin(), all.end());
        return std::adjacent_find(all.begin(), all.end()) != all.end();
    }

    void describe(const char* verb, const Step& step) {
        result_.text += std::string(verb) + name_of(step.function) + "(" + std::to_string(step.offset) + ", " +
                        std::to_string(step.count) + " x " + step.memory.text + "); ";
    }

    void after(const NaiveView& view, const Step& step, int code, MPI_Status& status, const char* what) {
        must(code, what);
        int moved = -1;
        MPI_Get_count(&status, MPI_BYTE, &moved);
        if (moved != step.bytes) {
            problem(std::string(what) + ": the status says " + std::to_string(moved) + " bytes instead of " +
                    std::to_string(step.bytes));
        }
        result_.data_bytes += step.bytes;
        if (step.function != Function::pointer && step.function != Function::pointer_all) return;
        pointer_ += step.bytes / view.etype.size();
        MPI_Offset position = -1;
        must(io_.get_position(file_, &position), "get_position");
        if (position != pointer_) {
            problem(std::string(what) + ": the file pointer is at " + std::to_string(position) + " instead of " +
                    std::to_string(pointer_));
        }
    }

    void write_phase() {
        const NaiveView view = new_view("write:");
        std::vector<std::int64_t> offsets;
        std::vector<unsigned char> values;
        const std::int64_t steps = shared_.between(1, 4);
        for (std::int64_t s = 0; s < steps; ++s) {
            const Step step = random_step(view);
            describe("write", step);
            Buffer buffer(step.memory, step.count);
            for (std::int64_t i = 0; i < step.bytes; ++i) {
                const auto value = static_cast<unsigned char>(own_.bits() >> 11);
                buffer.at(step.memory.displacement(i)) = value;
                offsets.push_back(view.file_offset(step.offset * view.etype.size() + i));
                values.push_back(value);
            }
            MPI_Status status;
            int code = MPI_SUCCESS;
            const int count = static_cast<int>(step.count);
            switch (step.function) {
                case Function::at:
                    code = io_.write_at(file_, step.offset, buffer.address(), count, step.memory.type, &status);
                    break;
                case Function::at_all:
                    code = io_.write_at_all(file_, step.offset, buffer.address(), count, step.memory.type, &status);
                    break;
                case Function::pointer:
                    code = io_.write(file_, buffer.address(), count, step.memory.type, &status);
                    break;
                case Function::pointer_all:
                    code = io_.write_all(file_, buffer.address(), count, step.memory.type, &status);
                    break;
            }
            after(view, step, code, status, "write");
            if (level_ == Level::tame) settle();
        }
        apply_writes(offsets, values);
        settle();
    }

    /// What was written before is in the file for all ranks (MPI 4.0, section 14.6.1). Between the calls of one rank MPI promises
    /// as much without it; its libraries do not keep that where one rank's bytes go through another in a collective call.
    void settle() {
        must(io_.sync(file_), "sync");
        MPI_Barrier(comm_);
        must(io_.sync(file_), "sync");
    }

    /// Every rank's writes into every rank's model: views do not overlap, so that the order of ranks does not matter.
    void apply_writes(const std::vector<std::int64_t>& offsets, const std::vector<unsigned char>& values) {
        int mine = static_cast<int>(offsets.size());
        std::vector<int> counts(static_cast<std::size_t>(ranks_)), starts(counts.size(), 0);
        MPI_Allgather(&mine, 1, MPI_INT, counts.data(), 1, MPI_INT, comm_);
        std::partial_sum(counts.begin(), counts.end() - 1, starts.begin() + 1);
        const auto total = static_cast<std::size_t>(starts.back() + counts.back());
        std::vector<std::int64_t> all_offsets(total + 1);
        std::vector<unsigned char> all_values(total + 1);
        MPI_Allgatherv(offsets.data(), mine, MPI_INT64_T, all_offsets.data(), counts.data(), starts.data(), MPI_INT64_T,
                       comm_);
        MPI_Allgatherv(values.data(), mine, MPI_BYTE, all_values.data(), counts.data(), starts.data(), MPI_BYTE, comm_);
        for (std::size_t i = 0; i < total; ++i) {
            const auto offset = static_cast<std::size_t>(all_offsets[i]);
            if (offset >= model_.size()) {
                model_.resize(offset + 1, 0);
                defined_.resize(offset + 1, level_ == Level::wild);
            }
            model_[offset] = all_values[i];
            defined_[offset] = true;
        }
    }

    /// Only what lies before the end of the file: MPI libraries differ in what they say about the rest.
    void clip_to_file(const NaiveView& view, Step& step) const {
        const std::int64_t etype = view.etype.size();
        const std::int64_t unit = unit_of(step, etype);
        while (step.count > 0) {
            const std::int64_t last = view.file_offset(step.offset * etype + step.bytes - 1);
            if (last < std::ssize(model_)) return;
            step.count = std::max<std::int64_t>(0, step.count - std::max<std::int64_t>(1, unit));
            if (step.count * step.memory.size() % etype != 0) step.count = 0;
            step.bytes = step.count * step.memory.size();
        }
    }

    void read_phase() {
        const NaiveView view = new_view("read:");
        const std::int64_t steps = shared_.between(1, 3);
        for (std::int64_t s = 0; s < steps; ++s) {
            Step step = random_step(view);
            clip_to_file(view, step);
            describe("read", step);
            Buffer buffer(step.memory, step.count), expected(step.memory, step.count);
            for (std::int64_t i = 0; i < step.bytes; ++i) {
                const std::int64_t offset = view.file_offset(step.offset * view.etype.size() + i);
                expected.at(step.memory.displacement(i)) = model_[static_cast<std::size_t>(offset)];
            }
            MPI_Status status;
            int code = MPI_SUCCESS;
            const int count = static_cast<int>(step.count);
            switch (step.function) {
                case Function::at:
                    code = io_.read_at(file_, step.offset, buffer.address(), count, step.memory.type, &status);
                    break;
                case Function::at_all:
                    code = io_.read_at_all(file_, step.offset, buffer.address(), count, step.memory.type, &status);
                    break;
                case Function::pointer:
                    code = io_.read(file_, buffer.address(), count, step.memory.type, &status);
                    break;
                case Function::pointer_all:
                    code = io_.read_all(file_, buffer.address(), count, step.memory.type, &status);
                    break;
            }
            after(view, step, code, status, "read");
            for (std::int64_t i = 0; i < step.bytes; ++i) {
                const std::int64_t offset = view.file_offset(step.offset * view.etype.size() + i);
                if (!defined_[static_cast<std::size_t>(offset)]) buffer.at(step.memory.displacement(i)) = 0;
            }
            const auto different = std::mismatch(buffer.bytes.begin(), buffer.bytes.end(), expected.bytes.begin());
            if (different.first != buffer.bytes.end()) {
                problem("what was read differs at displacement " +
                        std::to_string(different.first - buffer.bytes.begin() - buffer.origin));
            }
            result_.read_memory.insert(result_.read_memory.end(), buffer.bytes.begin(), buffer.bytes.end());
        }
    }

    void compare_file() {
        const int fd = ::open(path_.c_str(), O_RDONLY);
        unsigned char buffer[65536];
        for (ssize_t got = 0; (got = ::read(fd, buffer, sizeof buffer)) > 0;) {
            result_.file.insert(result_.file.end(), buffer, buffer + got);
        }
        ::close(fd);
        for (std::size_t i = 0; i < std::min(result_.file.size(), model_.size()); ++i) {
            if (!defined_[i]) result_.file[i] = 0;
        }
        if (result_.file == model_) return;
        if (result_.file.size() != model_.size()) {
            problem("the file has " + std::to_string(result_.file.size()) + " bytes instead of " +
                    std::to_string(model_.size()));
        }
        const std::size_t common = std::min(result_.file.size(), model_.size());
        for (std::size_t i = 0; i < common; ++i) {
            if (result_.file[i] == model_[i]) continue;
            problem("the file differs at offset " + std::to_string(i));
            return;
        }
    }

    const IoCalls& io_;
    Level level_;
    MPI_Comm comm_;
    std::string path_;
    Random shared_;
    Random own_{0};
    int rank_ = 0, ranks_ = 1;
    MPI_File file_{};
    std::int64_t pointer_ = 0;
    std::vector<unsigned char> model_;
    std::vector<bool> defined_;  ///< of the model's bytes
    CaseResult result_;
};

}  // namespace

CaseResult run_case(const IoCalls& io, Level level, std::uint64_t seed, std::uint64_t index, MPI_Comm comm,
                    const std::string& path) {
    return Case(io, level, seed, index, comm, path).run();
}

std::uint64_t hash_of(const CaseResult& result) {
    std::uint64_t hash = 1;
    for (const unsigned char byte : result.file) hash = Random::mix(hash + byte + 1);
    for (const unsigned char byte : result.read_memory) hash = Random::mix(hash + byte + 1);
    return hash;
}

}  // namespace cases
