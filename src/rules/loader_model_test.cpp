// The closed form against a discrete-event simulation of workers and a training loop that share the cores.
#include "rules/loader_model.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <deque>
#include <random>
#include <set>
#include <vector>

namespace hotlap {
namespace {

// Workers take batch numbers in turn, two ahead, as PyTorch's loader does; batches are consumed in order. Every
// runnable task has the same share of the cores; a training step of several threads is as fast as its slowest
// thread.
class Simulation {
 public:
  Simulation(const LoaderCosts& costs, int workers) : costs_(costs), workers_(static_cast<std::size_t>(workers)) {
    const double threads = costs.compute_cpu_ms / costs.compute_ms;
    threads_ = std::max(1.0, std::round(threads));
    for (int ahead = 0; ahead < 2; ++ahead) {
      for (Worker& worker : workers_) worker.queue.push_back(next_batch_++);
    }
  }

  // Mean time per batch once it runs smoothly.
  double run(int batches) {
    std::vector<double> ends;
    while (ends.size() < static_cast<std::size_t>(batches)) {
      start_work();
      if (advance()) ends.push_back(t_);
    }
    const std::size_t first = ends.size() / 5;
    return (ends.back() - ends[first]) / static_cast<double>(ends.size() - 1 - first);
  }

 private:
  struct Worker {
    std::deque<int> queue;
    bool is_working = false;
    int batch = 0;
    double io_left = 0;
    double cpu_left = 0;
  };

  double draw(double mean, double spread) {
    if (mean <= 0 || spread <= 0) return mean;
    const double shape = 1 / (spread * spread);
    return std::gamma_distribution<double>(shape, mean / shape)(random_);
  }

  void start_work() {
    for (Worker& worker : workers_) {
      if (worker.is_working || worker.queue.empty()) continue;
      worker.is_working = true;
      worker.batch = worker.queue.front();
      worker.queue.pop_front();
      worker.io_left = draw(costs_.worker_io_ms, costs_.worker_spread);
      worker.cpu_left = draw(costs_.worker_cpu_ms, costs_.worker_spread);
    }
    if (is_computing_ || !ready_.contains(wanted_)) return;
    ready_.erase(wanted_);
    workers_[static_cast<std::size_t>(wanted_) % workers_.size()].queue.push_back(next_batch_++);
    is_computing_ = true;
    compute_left_ = draw(costs_.compute_ms, 0.02);
    start_work();
  }

  // To the next event; true when a step ended.
  bool advance() {
    double tasks = is_computing_ ? threads_ : 0;
    for (const Worker& worker : workers_) tasks += worker.is_working && worker.io_left <= 0 ? 1 : 0;
    const double share = tasks > 0 ? std::min(1.0, costs_.cores / tasks) : 1;
    double dt = is_computing_ ? compute_left_ / share : 1e18;
    for (const Worker& worker : workers_) {
      if (worker.is_working) dt = std::min(dt, worker.io_left > 0 ? worker.io_left : worker.cpu_left / share);
    }
    t_ += dt;
    for (Worker& worker : workers_) {
      if (!worker.is_working) continue;
      if (worker.io_left > 0) {
        worker.io_left = worker.io_left - dt < 1e-9 ? 0 : worker.io_left - dt;
        continue;
      }
      worker.cpu_left -= dt * share;
      if (worker.cpu_left > 1e-9) continue;
      worker.is_working = false;
      ready_.insert(worker.batch);
    }
    if (!is_computing_) return false;
    compute_left_ -= dt * share;
    if (compute_left_ > 1e-9) return false;
    is_computing_ = false;
    ++wanted_;
    return true;
  }

  LoaderCosts costs_;
  std::vector<Worker> workers_;
  double threads_ = 1;
  std::mt19937_64 random_{1};
  std::set<int> ready_;
  int next_batch_ = 0;
  int wanted_ = 0;
  bool is_computing_ = false;
  double compute_left_ = 0;
  double t_ = 0;
};

TEST(LoaderModel, IsWithinTenPercentOfTheSimulation) {
  std::mt19937_64 random(7);
  const auto uniform = [&](double low, double high) {
    return std::uniform_real_distribution<double>(low, high)(random);
  };
  const auto pick = [&](const std::vector<double>& from) {
    return from[std::uniform_int_distribution<std::size_t>(0, from.size() - 1)(random)];
  };
  int beyond_5 = 0;
  constexpr int kCases = 300;
  for (int i = 0; i < kCases; ++i) {
    LoaderCosts costs;
    costs.cores = pick({2, 2, 4, 8, 16});
    costs.compute_ms = uniform(10, 100);
    costs.compute_cpu_ms = costs.compute_ms * pick({1, 1, 1, costs.cores});
    const double worker = uniform(20, 400);
    const double io = pick({0, 0, 0.3, 0.8});
    costs.worker_cpu_ms = worker * (1 - io);
    costs.worker_io_ms = worker * io;
    costs.worker_spread = pick({0.03, 0.1, 0.2, 0.4});
    const int workers = std::uniform_int_distribution<int>(1, std::min(2 * static_cast<int>(costs.cores), 12))(random);
    const double simulated = Simulation(costs, workers).run(300);
    const double modelled = step_ms(costs, workers);
    const double error = simulated / modelled - 1;
    EXPECT_LT(std::abs(error), 0.15) << "case " << i << ": " << workers << " workers on " << costs.cores
                                     << " cores, batch " << costs.worker_cpu_ms << " + " << costs.worker_io_ms
                                     << " ms, compute " << costs.compute_ms << " ms (" << costs.compute_cpu_ms
                                     << " CPU), spread " << costs.worker_spread << ": simulated " << simulated
                                     << ", model " << modelled;
    beyond_5 += std::abs(error) > 0.05 ? 1 : 0;
  }
  EXPECT_LT(beyond_5, kCases / 10);
}

TEST(LoaderModel, TwoCoresAreSharedByWorkersAndTraining) {
  const LoaderCosts costs{.worker_cpu_ms = 68, .compute_ms = 18, .compute_cpu_ms = 18, .cores = 2};
  EXPECT_NEAR(step_ms(costs, 0), 86, 1e-9);
  EXPECT_NEAR(step_ms(costs, 1), 68, 1);
  EXPECT_NEAR(step_ms(costs, 2), 43, 1);
  EXPECT_NEAR(step_ms(costs, 4), 43, 1);
  const LoaderChoice choice = choose_workers(costs, 8);
  EXPECT_EQ(choice.workers, 2);
  EXPECT_EQ(choice.limit, LoaderLimit::kCores);
}

TEST(LoaderModel, TheSmallestNumberThatRemovesTheWait) {
  // verdicts.md, the first: 420 ms of worker time, the GPU needs 95 ms, cores to spare.
  const LoaderCosts costs{.worker_cpu_ms = 420, .compute_ms = 95, .compute_cpu_ms = 40, .cores = 8};
  const LoaderChoice choice = choose_workers(costs, 32);
  EXPECT_EQ(choice.limit, LoaderLimit::kCompute);
  EXPECT_GE(choice.workers, 5);
  EXPECT_LE(choice.workers, 6);
  EXPECT_LE(choice.least, 5);
  EXPECT_NEAR(choice.step_ms, 95, 3);
}

TEST(LoaderModel, IoIsNoLoadForTheCores) {
  const LoaderCosts costs{.worker_cpu_ms = 10, .worker_io_ms = 390, .compute_ms = 50, .compute_cpu_ms = 50, .cores = 2};
  const LoaderChoice choice = choose_workers(costs, 32);
  EXPECT_GE(choice.workers, 8);
  EXPECT_LT(choice.step_ms, 62);
}

TEST(LoaderModel, NothingDependsOnTheOrderOfMagnitude) {
  for (const double scale : {0.01, 1.0, 1000.0}) {
    const LoaderCosts costs{
        .worker_cpu_ms = 100 * scale, .compute_ms = 20 * scale, .compute_cpu_ms = 20 * scale, .cores = 4};
    EXPECT_NEAR(step_ms(costs, 3) / scale,
                step_ms({.worker_cpu_ms = 100, .compute_ms = 20, .compute_cpu_ms = 20, .cores = 4}, 3), 1e-6);
  }
}

}  // namespace
}  // namespace hotlap
