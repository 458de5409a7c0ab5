#include "tracer/ring/align.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "base/raw_syscall.hpp"
#include "base/ticks.hpp"
#include "ioweir_generated/records.hpp"
#include "tracer/ring/process.hpp"

namespace ioweir::tracer {
namespace {

constexpr std::uint64_t second_ns = 1'000'000'000;
constexpr std::uint64_t stale_ns = 10 * second_ns;   // an alignment older than this is repeated when a process comes by
constexpr std::uint64_t search_ns = second_ns / 4;   // how long an answer is waited for
constexpr std::uint64_t resend_ns = second_ns / 20;  // packets get lost
constexpr std::uint64_t exchange_ns = second_ns / 50;   // how long one round trip may take
constexpr std::uint64_t exchanges_ns = second_ns / 10;  // and all of them
constexpr int wanted_exchanges = 48;
constexpr int most_addresses = 8;
constexpr char separator = '+';

struct Request {
    std::uint64_t token;
    std::uint64_t sequence;
};
struct Reply {
    std::uint64_t token;
    std::uint64_t sequence;
    std::uint64_t received_ns;  // by the run's clock
    std::uint64_t sent_ns;
};

/// The fastest exchange: the run's clock showed reference_ns when ours showed `tick`, give or take half the round trip.
struct Sample {
    std::uint64_t tick = 0;
    std::uint64_t reference_ns = 0;
    std::uint64_t round_trip_ticks = ~std::uint64_t{0};
};

struct Server {
    std::uint64_t token = 0;
    char boot_id[64] = {};
    sockaddr_in addresses[most_addresses] = {};
    int count = 0;
};

const char* reference_clock = nullptr;
bool same_machine_is_told = true;
bool did_align = false;  // this process, and with success

/// The next field of IOWEIR_CLOCK; false at its end.
bool next_field(const char*& at, char* out, std::size_t capacity) {
    if (*at == '\0') return false;
    std::size_t length = 0;
    for (; *at != '\0' && *at != separator; ++at)
        if (length + 1 < capacity) out[length++] = *at;
    out[length] = '\0';
    if (*at == separator) ++at;
    return true;
}

bool parse(const char* text, Server& server) {
    char field[64];
    if (!next_field(text, field, sizeof field)) return false;
    server.token = std::strtoull(field, nullptr, 16);
    if (!next_field(text, server.boot_id, sizeof server.boot_id) || !next_field(text, field, sizeof field))
        return false;
    const auto port = static_cast<std::uint16_t>(std::strtoul(field, nullptr, 10));
    while (server.count < most_addresses && next_field(text, field, sizeof field)) {
        sockaddr_in& address = server.addresses[server.count];
        address.sin_family = AF_INET;
        address.sin_port = htons(port);
        if (::inet_pton(AF_INET, field, &address.sin_addr) == 1) ++server.count;
    }
    return port != 0 && server.count != 0;
}

bool is_this_machine(const char* boot_id) {
    char mine[64] = {};
    const int fd = raw::openat(AT_FDCWD, "/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC, 0);
    if (fd < 0) return false;
    const ssize_t length = raw::read(fd, mine, sizeof mine - 1);
    raw::close(fd);
    mine[std::strcspn(mine, "\n")] = '\0';
    return length > 0 && std::strcmp(mine, boot_id) == 0;
}

void send(int fd, const sockaddr_in& address, const Request& request) {
    const ssize_t sent = ::sendto(fd, &request, sizeof request, MSG_NOSIGNAL | MSG_DONTWAIT,
                                  reinterpret_cast<const sockaddr*>(&address), sizeof address);
    (void)sent;  // what does not arrive is asked for again, or not at all
}

/// Waits until `deadline_ns` (CLOCK_MONOTONIC) for the answer to `sequence` or a later request.
bool receive(int fd, const Server& server, std::uint64_t sequence, std::uint64_t deadline_ns, Reply& reply,
             std::uint64_t& tick) {
    for (;;) {
        const ssize_t length = ::recv(fd, &reply, sizeof reply, MSG_DONTWAIT);
        tick = ticks(process_tracer.use_tsc);
        if (length == static_cast<ssize_t>(sizeof reply) && reply.token == server.token && reply.sequence >= sequence)
            return true;
        if (length >= 0) continue;
        const std::uint64_t now = clock_ns(CLOCK_MONOTONIC);
        if (now >= deadline_ns) return false;
        pollfd wait{fd, POLLIN, 0};
        const timespec most{0, static_cast<long>(deadline_ns - now)};
        ::ppoll(&wait, 1, &most, nullptr);
    }
}

/// Which of the server's addresses answers; the number of the request that was answered says it.
int search(int fd, const Server& server) {
    const std::uint64_t end = clock_ns(CLOCK_MONOTONIC) + search_ns;
    for (;;) {
        const std::uint64_t now = clock_ns(CLOCK_MONOTONIC);
        if (now >= end) return -1;
        for (int i = 0; i < server.count; ++i)
            send(fd, server.addresses[i], {server.token, static_cast<std::uint64_t>(i)});
        Reply reply;
        std::uint64_t tick = 0;
        const std::uint64_t again = now + resend_ns < end ? now + resend_ns : end;
        if (receive(fd, server, 0, again, reply, tick) && reply.sequence < static_cast<std::uint64_t>(server.count))
            return static_cast<int>(reply.sequence);
    }
}

/// Cristian's algorithm (1989): the shortest of many round trips bounds the error best.
int measure(int fd, const Server& server, int address, Sample& best) {
    const std::uint64_t end = clock_ns(CLOCK_MONOTONIC) + exchanges_ns;
    int done = 0;
    for (int i = 0; i < wanted_exchanges; ++i) {
        const std::uint64_t now = clock_ns(CLOCK_MONOTONIC);
        if (now >= end) break;
        const std::uint64_t sequence = static_cast<std::uint64_t>(most_addresses + i);
        const std::uint64_t begun = ticks(process_tracer.use_tsc);
        send(fd, server.addresses[address], {server.token, sequence});
        Reply reply;
        std::uint64_t ended = 0;
        if (!receive(fd, server, sequence, now + exchange_ns, reply, ended)) continue;
        ++done;
        if (ended - begun >= best.round_trip_ticks) continue;
        best.round_trip_ticks = ended - begun;
        best.tick = begun + (ended - begun) / 2;
        best.reference_ns = reply.received_ns + (reply.sent_ns - reply.received_ns) / 2;
    }
    return done;
}

bool write(format::AlignKind kind, const Sample& sample, int exchanges) {
    format::AlignRecord record{};
    record.how = static_cast<std::uint32_t>(kind);
    record.exchanges = static_cast<std::uint32_t>(exchanges);
    record.tick = sample.tick;
    record.reference_ns = sample.reference_ns;
    record.round_trip_ticks = sample.round_trip_ticks;
    return write_record(&record, sizeof record, record.record_kind, nullptr, 0);
}

bool ask(const Server& server) {
    Sample sample;
    if (same_machine_is_told && is_this_machine(server.boot_id)) {
        sample.tick = ticks(process_tracer.use_tsc);
        sample.reference_ns = clock_ns(CLOCK_REALTIME);
        sample.round_trip_ticks = 0;
        return write(format::AlignKind::same_machine, sample, 0);
    }
    const int fd = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0) return false;
    const int address = search(fd, server);
    const int exchanges = address >= 0 ? measure(fd, server, address, sample) : 0;
    raw::close(fd);
    if (exchanges == 0) {
        process_tracer.note(static_cast<std::uint32_t>(format::NoteCode::message), "", 0,
                            "the clock of the run did not answer: this node's times are by its own CLOCK_REALTIME");
        return false;
    }
    return write(format::AlignKind::exchanged, sample, exchanges);
}

}  // namespace

void set_reference_clock(const char* text, bool same_machine_counts) {
    reference_clock = text;
    same_machine_is_told = same_machine_counts;
}

void align_clock(bool ending) {
    if (reference_clock == nullptr || !process_tracer.active) return;
    const int saved_errno = errno;
    const std::uint64_t now = clock_ns(CLOCK_MONOTONIC);
    std::uint64_t* const last = node_alignment();
    Server server;
    if (last != nullptr && parse(reference_clock, server)) {
        std::uint64_t before = __atomic_load_n(last, __ATOMIC_RELAXED);
        const bool due = before == 0 || now - before > stale_ns || (ending && did_align);
        if (due && __atomic_compare_exchange_n(last, &before, now, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
            did_align = ask(server);
    }
    errno = saved_errno;
}

}  // namespace ioweir::tracer
