#include "tracer/ring/anonymise.hpp"

#include <cstring>

namespace ioweir::tracer {
namespace {

constexpr std::size_t longest_extension = 8;
constexpr std::size_t hash_digits = 16;

constexpr std::uint64_t rotate(std::uint64_t value, int bits) { return value << bits | value >> (64 - bits); }

struct Sip {
    std::uint64_t v0, v1, v2, v3;
    void round() {
        v0 += v1;
        v1 = rotate(v1, 13) ^ v0;
        v0 = rotate(v0, 32);
        v2 += v3;
        v3 = rotate(v3, 16) ^ v2;
        v0 += v3;
        v3 = rotate(v3, 21) ^ v0;
        v2 += v1;
        v1 = rotate(v1, 17) ^ v2;
        v2 = rotate(v2, 32);
    }
    void take(std::uint64_t word) {
        v3 ^= word;
        round();
        round();
        v0 ^= word;
    }
};

int digit(char c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    return -1;
}

bool is_alphanumeric(char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

/// ".h5" of "run7.h5"; empty for none, for hidden files and for what is no usual extension.
std::string_view extension_of(std::string_view name) {
    const std::size_t dot = name.rfind('.');
    if (dot == std::string_view::npos || dot == 0) return {};
    const std::string_view extension = name.substr(dot);
    if (extension.size() < 2 || extension.size() > 1 + longest_extension) return {};
    for (const char c : extension.substr(1))
        if (!is_alphanumeric(c)) return {};
    return extension;
}

/// Beginnings of the names that MPI runtimes give files and folders of their own. `numbered`: such a name ends in a number.
struct RuntimeName {
    std::string_view prefix;
    bool numbered;
};
constexpr RuntimeName runtime_names[] = {
    {"vader_segment", false}, {"sm_segment", false},     {"osc_rdma", false},    {"osc_sm", false},
    {"hwloc", false},         {"mpich_shar_tmp", false}, {"psm_shm", false},     {"psm2_shm", false},
    {"ucx_shm_posix", false}, {"Intel_MPI_", false},     {"pmix_dstor_", false}, {"pmix-", false},
    {"pmix.", false},         {"ompi.", true},           {"prte.", true},        {"openmpi-sessions-", true},
    {"spmix_appdir_", true},
};

class Writer {
public:
    Writer(char* out, std::size_t capacity) : out_(out), room_(capacity - 1) {}
    void text(std::string_view text) {
        if (text.size() > room_ - used_) {
            full_ = true;
            return;
        }
        if (!text.empty()) std::memcpy(out_ + used_, text.data(), text.size());  // an empty one may point nowhere
        used_ += text.size();
    }
    void hash(std::uint64_t value) {
        char digits[hash_digits];
        for (std::size_t i = 0; i < hash_digits; ++i) digits[i] = "0123456789abcdef"[value >> (60 - 4 * i) & 15];
        text({digits, hash_digits});
    }
    [[nodiscard]] bool full() const { return full_; }
    std::size_t finish() {
        out_[used_] = '\0';
        return used_;
    }

private:
    char* out_;
    std::size_t room_;
    std::size_t used_ = 0;
    bool full_ = false;
};

/// Where the end of a name begins by which OMPIO's files beside a program's file are told: its probe for locks
/// (f.locktest.12), and its shared file pointer (f-461645804-663.lock: job and process).
std::size_t end_of_ompio(std::string_view name) {
    const std::size_t lock_test = name.rfind(".locktest.");
    if (lock_test != std::string_view::npos || !name.ends_with(".lock")) return lock_test;
    constexpr std::string_view digits = "0123456789";
    std::size_t at = name.size() - std::string_view(".lock").size();
    for (int numbers = 0; numbers < 2; ++numbers) {
        const std::size_t dash = at == 0 ? std::string_view::npos : name.find_last_not_of(digits, at - 1);
        if (dash == std::string_view::npos || name[dash] != '-' || dash + 1 == at) return std::string_view::npos;
        at = dash;
    }
    return at;
}

void write_component(const HashKey& key, std::string_view name, bool last, Writer& out) {
    for (const RuntimeName& known : runtime_names) {
        if (!name.starts_with(known.prefix)) continue;
        out.text(known.prefix);
        out.hash(keyed_hash(key, name));
        if (known.numbered) out.text(".0");
        return;
    }
    const std::size_t probe = end_of_ompio(name);
    if (last && probe != std::string_view::npos) {
        out.hash(keyed_hash(key, name.substr(0, probe)));
        out.text(name.substr(probe));
        return;
    }
    out.hash(keyed_hash(key, name));
    if (last) out.text(extension_of(name));
}

}  // namespace

std::uint64_t keyed_hash(const HashKey& key, std::string_view text) {
    Sip sip{key.low ^ 0x736f'6d65'7073'6575ULL, key.high ^ 0x646f'7261'6e64'6f6dULL, key.low ^ 0x6c79'6765'6e65'7261ULL,
            key.high ^ 0x7465'6462'7974'6573ULL};
    std::size_t at = 0;
    for (; at + 8 <= text.size(); at += 8) {
        std::uint64_t word;
        std::memcpy(&word, text.data() + at, 8);
        sip.take(word);
    }
    std::uint64_t last = static_cast<std::uint64_t>(text.size()) << 56;
    for (std::size_t i = 0; at + i < text.size(); ++i)
        last |= static_cast<std::uint64_t>(static_cast<unsigned char>(text[at + i])) << (8 * i);
    sip.take(last);
    sip.v2 ^= 0xff;
    for (int i = 0; i < 4; ++i) sip.round();
    return sip.v0 ^ sip.v1 ^ sip.v2 ^ sip.v3;
}

bool parse_key(std::string_view text, HashKey& key) {
    if (text.size() != 32) return false;
    std::uint64_t words[2] = {};
    for (std::size_t i = 0; i < text.size(); ++i) {
        const int value = digit(text[i]);
        if (value < 0) return false;
        words[i / 16] = words[i / 16] << 4 | static_cast<std::uint64_t>(value);
    }
    key = {words[0], words[1]};
    return true;
}

std::size_t anonymise(const HashKey& key, std::string_view path, char* out, std::size_t capacity) {
    Writer writer(out, capacity);
    constexpr std::string_view shared_memory = "/dev/shm/";  // no name of anybody's, and runtime files are told by it
    std::size_t at = 0;
    if (path.starts_with(shared_memory)) {
        writer.text(shared_memory);
        at = shared_memory.size();
    }
    while (at < path.size() && !writer.full()) {
        if (path[at] == '/') {
            writer.text("/");
            ++at;
            continue;
        }
        const std::size_t end = path.find('/', at) == std::string_view::npos ? path.size() : path.find('/', at);
        write_component(key, path.substr(at, end - at), end == path.size(), writer);
        at = end;
    }
    return writer.finish();
}

}  // namespace ioweir::tracer
