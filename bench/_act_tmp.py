import sys; sys.path[:0]=["src"]
import torch,time
from torch import nn
from holter.collectors.activations import Activations
from holter.collectors.moments import *
from holter.collectors.roster import Roster
d="cuda"
model=nn.TransformerEncoder(nn.TransformerEncoderLayer(768,12,3072,activation=nn.GELU(),batch_first=True,norm_first=True),12,enable_nested_tensor=False).to(d)
x=torch.randn(16,1024,768,device=d)
opt=torch.optim.AdamW(model.parameters(),fused=True)
roster=Roster().joined_by([("",model)]); c=Activations()
bw=BackwardBegins((),True,roster); j=Joined(roster,Depth.FULL)
def step(w):
    if w: c.read(j)
    with torch.autocast("cuda",torch.bfloat16): l=model(x).float().mean()
    if w: c.read(bw)
    l.backward(); opt.step(); opt.zero_grad()
for _ in range(5): step(0); step(1)
T=[[],[]]
for i in range(20):
    for w in (0,1):
        torch.cuda.synchronize(); torch.cuda.reset_peak_memory_stats(); s=time.perf_counter(); step(w); h=time.perf_counter(); torch.cuda.synchronize(); T[w].append((time.perf_counter()-s,h-s,torch.cuda.max_memory_allocated()))
med=lambda v:sorted(v)[len(v)//2]
n=len(c._names)
for w in (0,1): print(w,"wall ms",med([t[0] for t in T[w]])*1e3,"host ms",med([t[1] for t in T[w]])*1e3,"peak GB",max(t[2] for t in T[w])/1e9)
print(n,"modules; host us/call",(med([t[1] for t in T[1]])-med([t[1] for t in T[0]]))/n*1e6,"wall us/call",(med([t[0] for t in T[1]])-med([t[0] for t in T[0]]))/n*1e6)
