#include "kernels/runner/hdf5_settings.hpp"

#include <string>
#include <vector>

#include "base/nearest_name.hpp"
#include "base/size_text.hpp"

namespace ioweir::kernels {

namespace {

struct Switch {
    std::string_view name;
    bool Hdf5Settings::* member;
    std::string_view off, on;
};
constexpr Switch switches[] = {
    {"transfer", &Hdf5Settings::collective, "independent", "collective"},
    {"layout", &Hdf5Settings::chunked, "contiguous", "chunked"},
    {"index", &Hdf5Settings::large_index, "default", "large"},
    {"evictions", &Hdf5Settings::evictions, "off", "on"},
    {"metadata", &Hdf5Settings::collective_metadata, "independent", "collective"},
    {"fill", &Hdf5Settings::fill, "never", "default"},
    {"memory", &Hdf5Settings::guarded, "packed", "guarded"},
    {"format", &Hdf5Settings::new_format, "earliest", "1.10"},
};
struct SizeSetting {
    std::string_view name;
    std::int64_t Hdf5Settings::* member;
};
constexpr SizeSetting sizes[] = {
    {"alignment", &Hdf5Settings::alignment},
    {"threshold", &Hdf5Settings::threshold},
    {"meta_block", &Hdf5Settings::meta_block},
};

}  // namespace

Result<bool> set_hdf5(Hdf5Settings& settings, std::string_view name, std::string_view value) {
    const std::string quoted = "'" + std::string(value) + "'";
    std::vector<std::string_view> names;
    for (const Switch& one : switches) {
        names.push_back(one.name);
        if (one.name != name) continue;
        if (value != one.on && value != one.off) {
            return Error{"--hdf5 " + std::string(name) + ": unknown value", quoted,
                         "write " + std::string(one.off) + " or " + std::string(one.on)};
        }
        settings.*one.member = value == one.on;
        return true;
    }
    for (const SizeSetting& one : sizes) {
        names.push_back(one.name);
        if (one.name != name) continue;
        const auto bytes = parse_size(value);
        if (!bytes)
            return Error{"--hdf5 " + std::string(name) + ": " + bytes.error().what, quoted, bytes.error().remedy};
        settings.*one.member = bytes.value();
        return true;
    }
    return Error{"--hdf5: unknown setting", "'" + std::string(name) + "'", name_remedy(name, names)};
}

}  // namespace ioweir::kernels
