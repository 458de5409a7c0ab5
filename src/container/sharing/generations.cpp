#include "container/sharing/generations.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/random.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/checked_text.hpp"
#include "container/sharing/locks.hpp"
#include "container/sharing/replaced.hpp"

namespace ioweir::container {
namespace {

constexpr std::string_view open_prefix = "open.", closed_prefix = "closed.", replaced_prefix = "replaced.";

std::string name_of(std::string_view prefix, std::uint32_t number) {
    return std::string(prefix) + std::to_string(number);
}

struct Numbers {
    std::vector<std::uint32_t> open, closed, replaced;

    [[nodiscard]] std::uint32_t last() const {
        std::uint32_t largest = 0;
        for (const auto* list : {&open, &closed, &replaced}) {
            for (const std::uint32_t number : *list) largest = std::max(largest, number);
        }
        return largest;
    }
};

Result<Numbers> numbers_in(const Directory& directory) {
    const auto there = names_in(directory);
    if (!there) return there.error();
    Numbers numbers;
    for (const std::string& name : there.value()) {
        if (const auto number = number_after(name, open_prefix)) numbers.open.push_back(*number);
        if (const auto number = number_after(name, closed_prefix)) numbers.closed.push_back(*number);
        if (const auto number = number_after(name, replaced_prefix)) numbers.replaced.push_back(*number);
    }
    std::sort(numbers.open.begin(), numbers.open.end());
    std::sort(numbers.replaced.begin(), numbers.replaced.end());
    return numbers;
}

/// What an ended generation says, for itself and those before it whose files it has replaced.
struct Said {
    Stamp stamp = 0;
    Left left;
};

constexpr std::size_t most_closed_bytes = 400;

/// Whose it is; version 2 did not say.
std::string closed_head(const Directory& directory, std::uint32_t generation) {
    if (directory.version < 3) return {};
    return "ioweir closed 3\nid " + directory.id() + "\ngeneration " + std::to_string(generation) + "\n";
}

std::string closed_text(const Directory& directory, std::uint32_t generation, const Said& said) {
    const auto number = [](auto value) { return " " + std::to_string(value); };
    const Left& left = said.left;
    std::array<char, 32> stamp{};
    std::snprintf(stamp.data(), stamp.size(), "stamp %016llx\n", static_cast<unsigned long long>(said.stamp));
    std::string text = closed_head(directory, generation) + stamp.data() + "indexes" + number(left.files) + "\nbytes" +
                       number(left.bytes) + "\n";
    if (directory.version >= 3)
        text += "names" + number(left.generations) + number(left.ranks) + "\nweights" + number(left.generation_bytes) +
                number(left.rank_bytes) + number(left.mixed) + "\n";
    return with_check(text);
}

struct Read {
    std::optional<Said> said;  ///< nothing where the file is not whole
    int error = 0;             ///< an errno value, where it cannot be read
    std::string why = {};      ///< and what is wrong, with its path
};

Read read_closed(const Directory& directory, std::uint32_t generation) {
    const std::string name = name_of(closed_prefix, generation);
    const std::string not_its = directory.path_of(name) + ": it is not as ioweir writes it";
    const auto cannot = [&](const Error& error) {
        return Read{std::nullopt, error.number, missing(directory.path_of(name), error).value};
    };
    const auto folder = directory.opened();
    if (!folder) return cannot(folder.error());
    const auto file = folder.value()->file(name);
    if (!file) return cannot(file.error());
    const auto begin = file.value().read_part(0, most_closed_bytes);
    if (!begin) return cannot(begin.error());
    const std::string& text = begin.value();
    const std::string head = closed_head(directory, generation);
    if (!text.starts_with(head)) return {std::nullopt, 0, not_its};
    unsigned long long stamp = 0, generations = 0, ranks = 0, generation_bytes = 0, rank_bytes = 0, mixed = 0;
    long long files = 0, bytes = 0;
    const int found = std::sscanf(text.c_str() + head.size(),
                                  "stamp %16llx\nindexes %lld\nbytes %lld\nnames %llu %llu\nweights %llu %llu %llu\n",
                                  &stamp, &files, &bytes, &generations, &ranks, &generation_bytes, &rank_bytes, &mixed);
    if (found < 3) return {std::nullopt, 0, not_its};
    const Said said{static_cast<Stamp>(stamp), {files, bytes, generations, ranks, generation_bytes, rank_bytes, mixed}};
    if (text != closed_text(directory, generation, said) || said.stamp < 0) return {std::nullopt, 0, not_its};
    return {said, 0, {}};
}

std::optional<Stamp> stamp_of_closed(const Directory& directory, std::uint32_t generation) {
    const Read read = read_closed(directory, generation);
    return read.said ? std::optional(read.said->stamp) : std::nullopt;
}

/// Of the last batch that is whole enough to be read; batches of one index have rising stamps.
Stamp stamp_of_index(const Directory& directory, const std::string& name) {
    const auto folder = directory.opened();
    if (!folder) return 0;
    const auto file = folder.value()->file(name);
    if (!file) return 0;
    Stamp last = 0;
    for (std::int64_t at = 0;;) {
        const auto begin = file.value().read_part(at, most_batch_header_bytes);
        const BatchHead head = begin ? read_head(begin.value()) : BatchHead();
        if (head.bytes == 0) break;
        last = std::max(last, head.stamp);
        at += head.bytes;
    }
    return last;
}

/// The lock of a file that was just made: whoever looks at it has it for a moment. Who may read it could keep it, and is not waited for. An errno value.
int lock_new_file(int descriptor) {
    const auto begin = std::chrono::steady_clock::now();
    for (;;) {
        const int error = lock_file(descriptor, LOCK_EX | LOCK_NB);
        if (error != EWOULDBLOCK || std::chrono::steady_clock::now() - begin > HeaderFileLock::patience) return error;
        ::usleep(1000);
    }
}

/// A new open.G and its lock: an errno value where it cannot be made, EEXIST where somebody else has that number.
struct Begun {
    int error = 0;
    std::shared_ptr<const GenerationLock> lock;
};
Begun create_open(const guarded::Folder& folder, std::uint32_t number) {
    const std::string name = name_of(open_prefix, number);
    auto file = folder.file(name, O_RDWR | O_CREAT | O_EXCL);
    if (!file) return {file.error().number, nullptr};
    const int descriptor = file.value().release();
    Begun begun{0, std::make_shared<const GenerationLock>(descriptor)};
    // Whoever looked at it before it was locked has taken it for one that has died.
    struct stat info{};
    const int locked = lock_new_file(descriptor);
    if (locked == EWOULDBLOCK) begun.error = locked;
    if (locked == 0 && ::fstat(descriptor, &info) == 0 && info.st_size > 0 && ::ftruncate(descriptor, 0) != 0)
        begun.error = errno;
    if (begun.error != 0) (void)folder.remove(name);
    return begun;
}

constexpr std::int64_t most_open_bytes = 200;

/// What an open.G says once it was seen that its job has died.
std::string dead_text(const Directory& directory, std::uint32_t generation, std::uint32_t later) {
    return with_check("ioweir open 1\nid " + directory.id() + "\ngeneration " + std::to_string(generation) +
                      "\ndead before " + std::to_string(later) + "\n");
}

std::optional<std::uint32_t> parse_dead(const Directory& directory, std::uint32_t generation, const std::string& text) {
    const std::size_t at = text.find("\ndead before ");
    unsigned long later = 0;
    if (at == std::string::npos || std::sscanf(text.c_str() + at, "\ndead before %lu\n", &later) != 1)
        return std::nullopt;
    const auto number = static_cast<std::uint32_t>(later);
    return text == dead_text(directory, generation, number) ? std::optional(number) : std::nullopt;
}

/// The job of another generation has died before `own` was begun: so it is written down, unless it was before.
bool note_death(const Directory& directory, const guarded::Folder& folder, std::uint32_t generation,
                std::uint32_t own) {
    auto file = folder.file(name_of(open_prefix, generation), O_RDWR);
    if (!file || lock_file(file.value().descriptor(), LOCK_EX | LOCK_NB) != 0) return false;
    const auto said = file.value().read_part(0, most_open_bytes);
    // Half of a text says nothing.
    if (said && !parse_dead(directory, generation, said.value()) && ::ftruncate(file.value().descriptor(), 0) == 0)
        (void)file.value().write_all(dead_text(directory, generation, own));
    unlock(file.value().release());
    return true;
}

/// Is there one of those that were begun before that has died?
bool note_deaths(const Directory& directory, const guarded::Folder& folder, std::uint32_t own) {
    const auto there = numbers_in(directory);
    bool any = false;
    for (const std::uint32_t number : there ? there.value().open : std::vector<std::uint32_t>{}) {
        if (number != own && note_death(directory, folder, number, own)) any = true;
    }
    return any;
}

/// From 1 to `most`.
std::uint32_t random_step(std::uint32_t most) {
    std::uint32_t random = 0;
    if (::getrandom(&random, sizeof random, GRND_NONBLOCK) != static_cast<ssize_t>(sizeof random)) return 1;
    return 1 + random % most;
}

/// The largest number begun so far, once it is sure that there is no later one of which only its files tell.
Result<std::uint32_t> last_begun(const Directory& directory, bool is_new) {
    auto there = numbers_in(directory);
    // Logs are made exclusively: with any that was begun, one in the way of a new one is an error by itself.
    const bool looks = there && !is_new && directory.has_index() && (!directory.is_log() || there.value().last() == 0);
    if (!looks) return there ? Result<std::uint32_t>(there.value().last()) : there.error();
    const auto named = last_named(directory);
    if (!named) return named.error();
    if (named.value().generation > there.value().last()) there = numbers_in(directory);  // begun meanwhile?
    if (!there) return there.error();
    if (named.value().generation <= there.value().last()) return there.value().last();
    const std::string number = std::to_string(named.value().generation);
    return Error{"a damaged ioweir container",
                 directory.path_of(named.value().name) + ": nothing says that its generation was begun; neither open." +
                     number + " nor a closed.G of it or a later one is in " + directory.path,
                 "restore them from a copy; with an empty file open." + number + " there, what was synced can be read"};
}

}  // namespace

Result<Generation> begin_generation(const Directory& directory, bool is_new) {
    const auto begun = last_begun(directory, is_new);
    if (!begun) return begun.error();
    const auto folder = directory.opened();
    if (!folder) return missing(directory.path, folder.error());
    std::uint32_t last = begun.value();
    // Where many begin at once, each with a handle of its own, they keep out of each other's way: numbers may be left out.
    for (std::uint32_t step = 1;; step = std::min<std::uint32_t>(2 * step, 1U << 16)) {
        last += random_step(step);
        Begun made = create_open(*folder.value(), last);
        if (made.error == EEXIST) continue;
        if (made.error != 0) return missing(directory.path, made.error);
        const std::array<std::uint32_t, 1> own{last};
        auto stamp = largest_stamp(directory, own);
        if (stamp)
            return Generation{last, stamp.value(), std::move(made.lock),
                              !is_new && note_deaths(directory, *folder.value(), last)};
        (void)folder.value()->remove(name_of(open_prefix, last));
        return stamp.error();
    }
}

namespace {

/// So that no two at a time take over what an ended generation says. Nobody waits: whoever does not get it leaves that to a later one.
class TakingOver {
public:
    explicit TakingOver(const guarded::Folder& folder) {
        auto about = folder.file("about", O_RDWR);
        if (!about) return;
        about_ = about.take();
        struct flock whole{};
        whole.l_type = F_WRLCK;
        whole.l_whence = SEEK_SET;
        allowed_ = ::fcntl(about_.descriptor(), F_OFD_SETLK, &whole) == 0;
    }
    TakingOver(const TakingOver&) = delete;
    TakingOver& operator=(const TakingOver&) = delete;
    [[nodiscard]] bool allowed() const { return allowed_; }

private:
    guarded::File about_;
    bool allowed_ = false;
};

}  // namespace

namespace {

/// The finalizer of SplitMix64 (Steele et al. 2014).
std::uint64_t mixed_name(std::uint64_t generation, std::uint64_t rank) {
    std::uint64_t bits = (generation << 32 | rank) + 0x9e3779b97f4a7c15U;
    bits = (bits ^ bits >> 30) * 0xbf58476d1ce4e5b9U;
    bits = (bits ^ bits >> 27) * 0x94d049bb133111ebU;
    return bits ^ bits >> 31;
}

}  // namespace

Left Left::of(std::uint32_t generation, std::uint32_t rank, std::int64_t bytes) {
    const auto weight = static_cast<std::uint64_t>(bytes);
    return {
        1, bytes, generation, rank, generation * weight, rank * weight, mixed_name(generation, rank) * (weight + 1)};
}

Left& Left::operator+=(const Left& other) {
    files += other.files;
    bytes += other.bytes;
    generations += other.generations;
    ranks += other.ranks;
    generation_bytes += other.generation_bytes;
    rank_bytes += other.rank_bytes;
    mixed += other.mixed;
    return *this;
}

Left Left::operator-(const Left& other) const {
    return {files - other.files,
            bytes - other.bytes,
            generations - other.generations,
            ranks - other.ranks,
            generation_bytes - other.generation_bytes,
            rank_bytes - other.rank_bytes,
            mixed - other.mixed};
}

std::optional<Left::Writer> Left::only_one() const {
    if (files < 0 || files > 1 || bytes < 0 || files + bytes == 0) return std::nullopt;
    const auto weight = static_cast<std::uint64_t>(bytes);
    // A whole file is gone, or the bytes of one alone differ.
    const std::uint64_t generation = files == 1 ? generations : generation_bytes / weight;
    const std::uint64_t rank = files == 1 ? ranks : rank_bytes / weight;
    if (generation == 0 || generation > UINT32_MAX || rank > UINT32_MAX) return std::nullopt;
    // Two that are shorter look like one between them but for this.
    if (mixed != mixed_name(generation, rank) * (weight + static_cast<std::uint64_t>(files))) return std::nullopt;
    return Writer{static_cast<std::uint32_t>(generation), static_cast<std::uint32_t>(rank)};
}

int end_generation(const Directory& directory, std::uint32_t generation, Stamp last, Left left) {
    const auto opened = directory.opened();
    if (!opened) return opened.error().number;
    const guarded::Folder& folder = *opened.value();
    const TakingOver over(folder);
    const auto there = numbers_in(directory);
    if (!there) return EIO;
    // The last one says which number comes next; for those before it, it says what they said.
    Said said{last, left};
    std::vector<std::uint32_t> before;
    for (const std::uint32_t number : there.value().closed) {
        if (number > generation || !over.allowed()) continue;
        const Read read = read_closed(directory, number);
        if (!read.said) continue;
        before.push_back(number);
        said.stamp = std::max(said.stamp, read.said->stamp);
        said.left += read.said->left;
    }
    const std::string open = name_of(open_prefix, generation);
    {
        auto file = folder.file(open, O_WRONLY | O_TRUNC);
        // Where locks do not reach from node to node, others may have taken it for one that has died.
        if (!file && file.error().number == ENOENT && folder.rename(name_of(replaced_prefix, generation), open) == 0)
            file = folder.file(open, O_WRONLY | O_TRUNC);
        if (!file) return file.error().number;
        int error = file.value().write_all(closed_text(directory, generation, said));
        if (const int at_close = file.value().close(); error == 0) error = at_close;
        if (error != 0) return error;
    }
    // In this order nothing is ever counted twice.
    for (const std::uint32_t number : before) (void)folder.remove(name_of(closed_prefix, number));
    if (const int error = folder.rename(open, name_of(closed_prefix, generation)); error != 0) return error;
    if (there.value().open.size() > 1) put_aside_replaced(directory);
    return 0;
}

GenerationLock::GenerationLock(int descriptor) : descriptor_(descriptor) { (void)::fstat(descriptor_, &status_); }

GenerationLock::~GenerationLock() { unlock_kept(descriptor_, status_); }

Life life_of(const Directory& directory, std::uint32_t generation) {
    const auto folder = directory.opened();
    if (!folder) return Life::unknown;
    auto file = folder.value()->file(name_of(open_prefix, generation));
    if (!file) return Life::unknown;
    const int error = lock_file(file.value().descriptor(), LOCK_EX | LOCK_NB);
    if (error == 0) unlock(file.value().release());
    return error == 0 ? Life::dead : error == EWOULDBLOCK ? Life::alive : Life::unknown;
}

std::optional<std::uint32_t> dead_before(const Directory& directory, std::uint32_t generation) {
    const auto folder = directory.opened();
    if (!folder) return std::nullopt;
    const auto file = folder.value()->file(name_of(open_prefix, generation));
    const auto text = file ? file.value().read_part(0, most_open_bytes) : Result<std::string>(file.error());
    return text ? parse_dead(directory, generation, text.value()) : std::nullopt;
}

int put_aside(const Directory& directory, std::uint32_t generation) {
    const auto folder = directory.opened();
    if (!folder) return folder.error().number;
    return folder.value()->rename(name_of(open_prefix, generation), name_of(replaced_prefix, generation));
}

bool Generations::was_ended(std::uint32_t number) const {
    return number <= last && !std::binary_search(open.begin(), open.end(), number) &&
           !std::binary_search(replaced.begin(), replaced.end(), number);
}

int forget_generation(const Directory& directory, std::uint32_t generation) {
    const auto folder = directory.opened();
    return folder ? folder.value()->remove(name_of(open_prefix, generation)) : folder.error().number;
}

Result<Generations> generations_in(const Directory& directory) {
    for (int attempt = 0;; ++attempt) {
        auto there = numbers_in(directory);
        if (!there) return there.error();
        Generations all{
            std::move(there.value().open), std::move(there.value().replaced), {}, 0, !there.value().closed.empty()};
        if (!all.open.empty()) all.last = all.open.back();
        bool gone = false;
        for (const std::uint32_t number : there.value().closed) {
            const Read read = read_closed(directory, number);
            if (read.error == ENOENT && attempt < 10) {
                gone = true;  // replaced by another one since
                break;
            }
            if (!read.said) return Error{"a damaged part of an ioweir container", read.why, "restore it from a copy"};
            all.left += read.said->left;
            all.last = std::max(all.last, number);
        }
        if (!gone) return all;
    }
}

Result<std::vector<std::uint32_t>> open_generations(const Directory& directory) {
    auto there = numbers_in(directory);
    if (!there) return there.error();
    return there.take().open;
}

Result<Stamp> largest_stamp(const Directory& directory, std::span<const std::uint32_t> own) {
    const auto there = numbers_in(directory);
    if (!there) return there.error();
    const auto is_own = [&](std::uint32_t number) { return std::find(own.begin(), own.end(), number) != own.end(); };
    std::vector<std::uint32_t> unsaid;  // generations of which only their indexes tell
    for (const std::uint32_t number : there.value().open) {
        if (!is_own(number)) unsaid.push_back(number);
    }
    Stamp largest = 0;
    bool all_said = true;
    for (const std::uint32_t number : there.value().closed) {
        const auto stamp = stamp_of_closed(directory, number);
        largest = std::max(largest, stamp.value_or(0));
        // It may stand for others that were ended before it. One that is gone by now was ended by another that is here or comes.
        if (!stamp) all_said = false;
    }
    if (unsaid.empty() && all_said) return largest;
    auto files = index_files(directory);
    if (!files) return files.error();
    for (const IndexFile& file : files.value()) {
        if (is_own(file.generation)) continue;
        if (all_said && std::find(unsaid.begin(), unsaid.end(), file.generation) == unsaid.end()) continue;
        largest = std::max(largest, stamp_of_index(directory, file.name));
    }
    return largest;
}

}  // namespace ioweir::container
