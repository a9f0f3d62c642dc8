#include "op_facts.h"

#include <set>

namespace millrace {

namespace {

void state_operands(const Program& program, const Program::Record& record, InputUse inputs,
                    OpFacts& facts) {
  const std::vector<Workspace::Carrier>& carriers = program.workspace().carriers();
  std::set<std::string> reads, writes;
  for (const Extent& extent : extents_of(record.op)) {
    if (extent.operand.is_input()) {
      if (inputs != InputUse::kByValue) continue;
      const std::string number = std::to_string(extent.operand.input());
      facts.scalars.push_back({"the address of input " + number, true});
      continue;
    }
    const std::string& name = carriers[static_cast<size_t>(extent.operand.carrier)].name;
    if (extent.access != Access::kWrite) reads.insert(name);
    if (extent.access != Access::kRead) writes.insert(name);
  }
  facts.reads.assign(reads.begin(), reads.end());
  facts.writes.assign(writes.begin(), writes.end());
}

void state_hazards(const Program::Record& record, OpFacts& facts) {
  if (const auto* pointwise = std::get_if<PointwiseOp>(&record.op)) {
    if (pointwise->scalar.from == ScalarSource::From::kHost) {
      facts.scalars.push_back({"host scalar " + std::to_string(pointwise->scalar.number), true});
    }
  }
  if (const auto* copy = std::get_if<CopyInOp>(&record.op)) {
    facts.hazards.push_back({Hazard::kPageableHost, "buffer " + std::to_string(copy->buffer)});
  }
  if (record.is_on_host) {
    facts.hazards.push_back({Hazard::kHostRead, "what it works on"});
  }
}

}  // namespace

std::string shown(const Site& site) {
  const std::string path = site.file;
  return path.substr(path.find_last_of('/') + 1) + ":" + std::to_string(site.line);
}

std::string name_of(const Program& program, size_t op) {
  return std::to_string(op) + " " + kind_of(program.records()[op].op);
}

ProgramFacts facts_of(const Program& program, const std::string& device, InputUse inputs) {
  ProgramFacts facts;
  facts.name = program.name();
  for (const Workspace::Carrier& carrier : program.workspace().carriers()) {
    CarrierFacts stated;
    stated.name = carrier.name;
    stated.owner = "the program";
    stated.device = device;
    stated.bytes = carrier.count * bytes_of(carrier.dtype);
    stated.is_sealed = true;  // a workspace's addresses are fixed before anything runs
    facts.carriers.push_back(std::move(stated));
  }
  for (size_t i = 0; i < program.records().size(); ++i) {
    const Program::Record& record = program.records()[i];
    OpFacts op;
    op.name = name_of(program, i);
    op.site = shown(record.site);
    op.device = device;
    op.context = 1;
    op.is_on_legacy_stream = false;
    state_operands(program, record, inputs, op);
    state_hazards(record, op);
    facts.ops.push_back(std::move(op));
  }
  return facts;
}

}  // namespace millrace
