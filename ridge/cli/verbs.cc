#include "ridge/cli/verbs.h"

namespace ridge::cli {

namespace {

std::vector<Verb> BenchVerbs() {
  return {{"step", "Times training steps on one random batch",
           "ridge bench step cnn --batch 64 --steps 100\n"
           "ridge bench step mlp --batch 128 --optimizer sgd --json",
           AddBenchStep},
          {"run", "Times a model's outputs, forward only, on one random batch",
           "ridge bench run net.onnx\n"
           "ridge bench run mlp --batch 16 --runs 10000 --json",
           AddBenchRun},
          {"suite", "Times all workloads, each in its own process, and finds regressions",
           "ridge bench suite --out suite.json\n"
           "ridge bench suite --against suite.json      exit 7 when one is slower\n"
           "ridge bench suite --only cnn:64,mlp:128 --rounds 5",
           AddBenchSuite},
          {"device", "Measures this machine for the planner and stores the result",
           "ridge bench device\n"
           "ridge bench device --json\n"
           "ridge bench device --tune resnet50 --batch 16",
           AddBenchDevice},
          {"memory", "Writes patterns over a device's memory, verifies them, and times both",
           "ridge bench memory --device cuda --size 64GiB\n"
           "ridge bench memory --size 256MiB --rounds 3 --json",
           AddBenchMemory},
          {"collective", "Measures how fast bytes move between ranks, by bytes and ranks",
           "ridge bench collective --devices 2\n"
           "ridge bench collective --devices 4 --most 64MiB --json",
           AddBenchCollective}};
}

// What is done with a model and data.
std::vector<Verb> ModelVerbs() {
  return {
      {"train", "Plans and runs a training, and compares plan and run",
       "ridge train cnn --data fashion-mnist --epochs 3 --batch 128\n"
       "ridge train mlp:hidden=256 --data npz:digits.npz --validation 0.1\n"
       "ridge train net.ridge --data csv:table.csv --optimizer sgd --lr 0.1 --momentum 0.9\n"
       "ridge train cnn --data fashion-mnist --validation 0.1 --sweep lr=1e-3,3e-4\n"
       "ridge train --resume               continues the newest run\n"
       "ridge train --resume runs/cnn-1 --epochs 10     trains a finished run further",
       AddTrain},
      {"launch", "Starts a training on many devices: mpirun, Slurm, Kubernetes; and again",
       "ridge launch --devices 2 --submit -- train cnn --data fashion-mnist --batch 128\n"
       "ridge launch --on slurm --devices 8 --devices-per-node 4 --cpus-per-device 8 -- train ...\n"
       "ridge launch --on mpijob --devices 4 --image NAME --claim NAME -- train ...",
       AddLaunch},
      {"data", "Shows what is in a data set: counts, ranges, duplicates, bad samples",
       "ridge data photos\n"
       "ridge data csv:table.csv\n"
       "ridge data images:photos --all --json",
       AddData},
      {"plan", "Prints what a training would need, without running it",
       "ridge plan cnn --batch 1024\n"
       "ridge plan resnet18 --batch 16 --fit 2GiB\n"
       "ridge plan cnn --why matmul\n"
       "ridge plan resnet50 --batch 256 --precision bf16 --on h100-sxm,rtx4090\n"
       "ridge plan cnn --data fashion-mnist --json",
       AddPlan},
      {"eval", "Prints loss and accuracy of a run's network on any data",
       "ridge eval runs/cnn-1 --data fashion-mnist\n"
       "ridge eval resnet50 --weights resnet50.safetensors --data npz:images.npz",
       AddEval},
      {"predict", "Answers for pictures, tables and arrays, by a trained run or an exported file",
       "ridge predict runs/cnn-1 photo.jpg\n"
       "ridge predict runs/mlp-1 new-rows.csv --checkpoint best\n"
       "ridge predict cnn.onnx photo.jpg --top 3",
       AddPredict},
      {"run", "Computes the outputs of a model for the arrays of an .npz file",
       "ridge run runs/cnn-1 --inputs images.npz --outputs logits.npz\n"
       "ridge run net.ridge --inputs in.npz --outputs out.npz --dim sequence=128",
       AddRun},
      {"generate", "Writes text with a language model, token by token",
       "ridge generate runs/gpt-1 'Once upon a time' --tokens 100\n"
       "ridge generate gpt2 --weights gpt2.safetensors --ids 464,2068 --temperature 0.8 --top-p "
       "0.9",
       AddGenerate},
      {"grad", "Computes the gradients of a model's output for its inputs and parameters",
       "ridge grad net.onnx --inputs in.npz --outputs out.npz\n"
       "ridge grad net.onnx --inputs in.npz --outputs out.npz --loss logits --backend reference",
       AddGrad},
      {"export", "Writes a model as a file for other programs, and verifies the file",
       "ridge export runs/cnn-1 --to onnx --out cnn.onnx\n"
       "ridge export runs/cnn-1 --to safetensors --out cnn.safetensors",
       AddExport}};
}

// About runs, graphs and steps.
std::vector<Verb> RunVerbs() {
  return {{"runs", "Lists the runs of a folder, newest first, and draws their curves",
           "ridge runs\n"
           "ridge runs --filter cnn\n"
           "ridge runs runs/cnn-1 --plot\n"
           "ridge runs runs/cnn-1 --html run.html",
           AddRuns},
          {"watch", "Follows the reports of a run that another process trains",
           "ridge watch                the newest run\n"
           "ridge watch runs/cnn-1 --json",
           AddWatch},
          {"opt", "Runs the passes on a text graph, and prints what they saved",
           "ridge opt net.ridge > simpler.ridge\n"
           "ridge opt net.ridge --pass cse        one pass only\n"
           "cat net.ridge | ridge opt -",
           AddOpt},
          {"compare", "Finds the first step and tensor in which two runs differ",
           "ridge compare runs/cnn-1 runs/cnn-2\n"
           "ridge compare runs/cnn-1 runs/cnn-2 --plot\n"
           "ridge compare runs/cnn-1 runs/cnn-2 --html both.html",
           AddCompare},
          {"profile", "Shows where the time of a training step goes, and what would help most",
           "ridge profile cnn --batch 64\n"
           "ridge profile resnet50 --batch 16 --trace step.json --html step.html\n"
           "ridge profile runs/cnn-1             with the run's own options and data",
           AddProfile}};
}

// About what there is: models, machines, this program.
std::vector<Verb> MachineVerbs() {
  return {{"bench", "Measures this machine, or a model's step on it",
           "ridge bench step cnn --batch 64\n"
           "ridge bench suite --against bench/results/suite-NAME.json\n"
           "ridge bench device",
           nullptr, BenchVerbs()},
          {"models", "Lists the built-in models: parameters, FLOPs, inputs, and arguments",
           "ridge models\n"
           "ridge models gpt:layers=12,hidden=768\n"
           "ridge models --json",
           AddModels},
          {"choose",
           "Ranks devices for a training or for serving, by cost, time or energy, within limits",
           "ridge choose resnet50 --batch 256 --data-size 1281167 --epochs 90\n"
           "ridge choose resnet50 --batch 256 --data-size 1281167 --epochs 90 --deadline 24h "
           "--budget 500USD\n"
           "ridge choose bert_base --data-size 88000 --own rtx3090 --among "
           "rtx3090,rtx4090,a100-pcie-40g\n"
           "ridge choose resnet50 --batch 256 --frameworks --among h100-sxm\n"
           "ridge choose resnet50 --serve --input video:1920x1080@30 --streams 4 --latency 80ms\n"
           "ridge choose llama2_7b --serve --prompt 512 --output 128 --sequences 1,8,32",
           AddChoose},
          {"devices",
           "Lists devices that may not be here: memory, rates, power, links, sources",
           "ridge devices\n"
           "ridge devices show h100-sxm\n"
           "ridge devices show h100-sxm --toml > my-gpu.toml",
           AddDevices,
           {{"show", "Shows all that is known of a device, and what is not",
             "ridge devices show rtx4090\n"
             "ridge devices show my-gpu.toml --json",
             AddDevicesShow},
            {"clusters", "Lists clusters: the devices of a node, and the network between nodes",
             "ridge devices clusters\n"
             "ridge choose gpt2 --batch 512 --data-size 1000000 --cluster dgx-h100 --nodes 4",
             AddDevicesClusters}}},
          {"doctor",
           "Prints what was found on this machine, what is wrong, and what mends it",
           "ridge doctor\n"
           "ridge doctor --json > machine.json\n"
           "ridge doctor --probe machine.json --dockerfile Dockerfile",
           AddDoctor,
           {{"cluster", "Shows what several ranks need: MPI, Slurm, networks, shared memory, cores",
             "ridge doctor cluster --devices 4\n"
             "ridge doctor cluster --json > node.json",
             AddDoctorCluster}}},
          {"completion", "Prints the completion script of a shell",
           "source <(ridge completion bash)\n"
           "ridge completion zsh > ~/.zfunc/_ridge\n"
           "ridge completion fish > ~/.config/fish/completions/ridge.fish",
           AddCompletion}};
}

}  // namespace

const std::vector<Verb>& Verbs() {
  static const std::vector<Verb> kVerbs = [] {
    std::vector<Verb> verbs = ModelVerbs();
    for (const std::vector<Verb>& more : {RunVerbs(), MachineVerbs()})
      verbs.insert(verbs.end(), more.begin(), more.end());
    return verbs;
  }();
  return kVerbs;
}

}  // namespace ridge::cli
