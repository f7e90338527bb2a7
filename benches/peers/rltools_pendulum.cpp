// SAC, TD3 or PPO of RLtools on Pendulum, compiled by rltools_pendulum.py with the work's settings as macros: WORK_SAC or WORK_PPO (otherwise TD3), WORK_HIDDEN
// and WORK_BATCH. Prints the steps per second after the warm-up. Every step of SAC and TD3 has an update; PPO has ten epochs for each rollout.

#include <rl_tools/operations/cpu_mux.h>

#include <rl_tools/nn/optimizers/adam/instance/operations_generic.h>
#include <rl_tools/nn/operations_cpu_mux.h>
#include <rl_tools/nn/layers/sample_and_squash/operations_generic.h>
#include <rl_tools/nn/layers/td3_sampling/operations_generic.h>
#include <rl_tools/rl/environments/pendulum/operations_cpu.h>
#include <rl_tools/nn_models/mlp/operations_generic.h>
#include <rl_tools/nn_models/random_uniform/operations_generic.h>
#include <rl_tools/nn/layers/standardize/operations_generic.h>
#include <rl_tools/nn_models/mlp_unconditional_stddev/operations_generic.h>
#include <rl_tools/nn_models/sequential/operations_generic.h>
#include <rl_tools/nn/optimizers/adam/operations_generic.h>

#ifdef WORK_SAC
#include <rl_tools/rl/algorithms/sac/loop/core/config.h>
#include <rl_tools/rl/algorithms/sac/loop/core/operations_generic.h>
namespace algorithm = rl_tools::rl::algorithms::sac;
#elif defined(WORK_PPO)
#include <rl_tools/rl/algorithms/ppo/loop/core/config.h>
#include <rl_tools/rl/algorithms/ppo/loop/core/operations_generic.h>
namespace algorithm = rl_tools::rl::algorithms::ppo;
#else
#include <rl_tools/rl/algorithms/td3/loop/core/config.h>
#include <rl_tools/rl/algorithms/td3/loop/core/operations_generic.h>
namespace algorithm = rl_tools::rl::algorithms::td3;
#endif

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <vector>

namespace rlt = rl_tools;

using Device = rlt::devices::DEVICE_FACTORY<>;
using Rng = Device::SPEC::RANDOM::ENGINE<>;
using Index = Device::index_t;
using Number = float;
using Policy = rlt::numeric_types::Policy<Number>;
using Pendulum = rlt::rl::environments::Pendulum<rlt::rl::environments::pendulum::Specification<Number, Index, rlt::rl::environments::pendulum::DefaultParameters<Number>>>;

struct Parameters : algorithm::loop::core::DefaultParameters<Policy, Index, Pendulum> {
#ifdef WORK_PPO
    struct PPO_PARAMETERS : algorithm::DefaultParameters<Policy, Index, WORK_BATCH> {
        static constexpr Number GAMMA = 0.9;
    };
    static constexpr Index BATCH_SIZE = WORK_BATCH;
    static constexpr Index N_ENVIRONMENTS = 4;
    static constexpr Index ON_POLICY_RUNNER_STEPS_PER_ENV = 1024;
    static constexpr Index DATASET_SIZE = N_ENVIRONMENTS * ON_POLICY_RUNNER_STEPS_PER_ENV;
    static constexpr Index EPISODE_STEP_LIMIT = 200;
    static constexpr Index STEPS = DATASET_SIZE;
    static constexpr Index WARM_UP = 1;
#else
    static constexpr Index STEPS = 1;
    // one update is sure to take place before the clock starts
    static constexpr Index WARM_UP = 2 * WORK_BATCH;
#ifdef WORK_SAC
    struct SAC_PARAMETERS : algorithm::DefaultParameters<Policy, Index, Pendulum::ACTION_DIM> {
#else
    struct TD3_PARAMETERS : algorithm::DefaultParameters<Policy, Index> {
        static constexpr Number GAMMA = 0.98;
#endif
        static constexpr Index ACTOR_BATCH_SIZE = WORK_BATCH;
        static constexpr Index CRITIC_BATCH_SIZE = WORK_BATCH;
    };
    static constexpr Index N_WARMUP_STEPS = WORK_BATCH;
    static constexpr Index N_WARMUP_STEPS_CRITIC = WORK_BATCH;
    static constexpr Index N_WARMUP_STEPS_ACTOR = WORK_BATCH;
    static constexpr Index REPLAY_BUFFER_CAP = 200000;
#endif
    static constexpr Index STEP_LIMIT = 1000000;
    static constexpr Index ACTOR_HIDDEN_DIM = WORK_HIDDEN;
    static constexpr Index CRITIC_HIDDEN_DIM = WORK_HIDDEN;
};

using Config = algorithm::loop::core::Config<Policy, Index, Rng, Pendulum, Parameters>;

int main(int count, char** arguments) {
    const int rounds = count > 1 ? std::atoi(arguments[1]) : 9;
    Device device;
    typename Config::template State<Config> state;
    rlt::malloc(device, state);
    rlt::init(device, state, 1);
    for (Index i = 0; i < Parameters::WARM_UP; i++) rlt::step(device, state);
    std::vector<double> rates;
    while (static_cast<int>(rates.size()) < rounds) {
        const auto began = std::chrono::steady_clock::now();
        int steps = 0;
        double seconds = 0;
        for (; seconds < 0.5; steps += Parameters::STEPS) {
            rlt::step(device, state);
            seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
        }
        rates.push_back(steps / seconds);
    }
    std::sort(rates.begin(), rates.end());
    std::printf("rltools: %.0f steps/s\n", rates[rates.size() / 2]);
}
