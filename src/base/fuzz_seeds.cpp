// A fuzzer writes its own seeds: with IOWEIR_FUZZ_SEEDS=DIRECTORY in its environment it puts them there and ends.
#include <cstdio>
#include <cstdlib>
#include <string>

#include "base/fuzz_target.hpp"

extern "C" int LLVMFuzzerInitialize(int* count, char*** words);

extern "C" int LLVMFuzzerInitialize(int*, char***) {
    const char* const folder = std::getenv("IOWEIR_FUZZ_SEEDS");
    if (folder == nullptr) return 0;
    int number = 0;
    for (const std::string& seed : ioweir::fuzz_seeds()) {
        const std::string path = std::string(folder) + "/seed-" + std::to_string(number++);
        std::FILE* file = std::fopen(path.c_str(), "wb");
        const bool written = file != nullptr && std::fwrite(seed.data(), 1, seed.size(), file) == seed.size();
        if (!written || std::fclose(file) != 0) {
            std::perror(path.c_str());
            std::exit(1);
        }
    }
    std::exit(number > 0 ? 0 : 1);
}
