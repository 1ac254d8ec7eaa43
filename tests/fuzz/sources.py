"""A sound file of every kind that prices are read from, to be damaged."""

from __future__ import annotations

VMS = (
    "InstanceType,AcceleratorName,AcceleratorCount,vCPUs,MemoryGiB,GpuInfo,Price,SpotPrice,Region\n"
    "p5.48xlarge,H100,8,192,2048,\"{'SizeInMiB': 81920}\",55.04,19.0,us-east-1\n"
    "g6.xlarge,L4,1,4,16,,0.8048,0.2,us-east-1\n"
)
OWN = (
    "gpu,provider,price_per_instance_h,gpus_per_instance,currency,commitment,seller,date,source,notes\n"
    "h100-sxm5-80gb,acme,24,8,USD,on-demand,provider,2026-10-01,offer,note\n"
    'l4,wolke,0.5,1,EUR,spot,marketplace,2026-10-02,offer 2,"a, b"\n'
)
BOOK = (
    "id,gpu,provider,region,instance,gpus_per_instance,commitment,price_per_gpu_h,currency,seller,date_earliest,"
    "date_latest,date_basis,source,notes\n"
    "x1,h100-sxm5-80gb,acme,,,8,on-demand,2.50,USD,provider,2026-10-01,2026-10-01,test,test,note\n"
    "x2,l4,wolke,eu,,1,spot,0.20,EUR,provider,2026-10-01,2026-10-01,test,test,\n"
)
RATES = "currency,usd_per_unit,date,source\nEUR,1.08,2026-01-01,bank\nEUR,1.12,2026-06-01,bank\n"
QUOTE = (
    'vendor = "ACME"\ngpu = "h100-sxm5-80gb"\nprice_per_gpu_h = 1.9\ncurrency = "USD"\nminimum_term = "90d"\n'
    'minimum_gpus = 8\nsetup_fee = 25000\nvalid_until = 2027-01-01\nregion = "us-east-1"\n'
)
TARIFF = '[[period]]\nfrom = 0\nto = 24\ndays = "all"\nusd_per_kwh = 0.08\n'
BESIDE = '[storage]\nusd_per_gb_month = 0.02\ndata = "40TB"\n[egress]\nusd_per_gb = 0.05\ndata = "1TB"\n'
