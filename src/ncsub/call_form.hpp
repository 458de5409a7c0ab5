// What the name of a PnetCDF function says of an access to variables: ncmpi_put_vara_double_all. Pure.
// What does not live here: the functions that move no data.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace ioweir::ncsub {

enum class Verb : std::uint8_t { put, get, iput, iget, bput, mput, mget };
enum class Access : std::uint8_t { var, var1, vara, vars, varm, varn, vard };

/// Element types of buffers, as functions are named by them; `described`: the call is told an MPI datatype.
enum class Element : std::uint8_t {
    text,
    schar,
    uchar,
    int16,
    uint16,
    int32,
    uint32,
    slong,
    float32,
    float64,
    int64,
    uint64,
    described,
};
inline constexpr int element_count = 12;  ///< but for `described`

/// Bytes of an element in memory; of `described` 0.
[[nodiscard]] std::int64_t bytes_of(Element element);

struct CallForm {
    Verb verb = Verb::put;
    Access access = Access::var;
    Element element = Element::described;
    bool collective = false;  ///< its name ends in _all
    friend bool operator==(const CallForm&, const CallForm&) = default;

    [[nodiscard]] bool writes() const { return verb != Verb::get && verb != Verb::iget && verb != Verb::mget; }
    [[nodiscard]] bool blocking() const { return verb == Verb::put || verb == Verb::get; }
    [[nodiscard]] bool several() const { return verb == Verb::mput || verb == Verb::mget; }

    // Places of arguments, from 0; -1: there is none. Before them are the ncid and the variable; not for several().
    [[nodiscard]] int start() const { return access == Access::var || access == Access::vard ? -1 : 2; }
    [[nodiscard]] int count() const { return access >= Access::vara && access <= Access::varm ? 3 : -1; }
    [[nodiscard]] int stride() const { return access == Access::vars || access == Access::varm ? 4 : -1; }
    [[nodiscard]] int map() const { return access == Access::varm ? 5 : -1; }
    [[nodiscard]] int buffer() const;
    [[nodiscard]] int buffer_count() const { return element == Element::described ? buffer() + 1 : -1; }
    [[nodiscard]] int buffer_type() const { return element == Element::described ? buffer() + 2 : -1; }
};

/// Nothing: the function of that name moves no variable's data.
[[nodiscard]] std::optional<CallForm> parse_call(std::string_view symbol);

}  // namespace ioweir::ncsub
